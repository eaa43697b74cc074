//go:build !race

package claims_test

import "time"

const struggleFor = 4 * time.Minute
