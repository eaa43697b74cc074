// Package flows has the commands about workflows that are written down in YAML: validate, deploy,
// run, show and graph.
package flows
