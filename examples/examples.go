// Package examples holds the example that "drover init" copies.
package examples

import "embed"

// Signup is the folder signup: a module but for its go.mod. Its packages import each other below
// the path of this package.
//
//go:embed signup
var Signup embed.FS
