// Package check has the commands that look for what is wrong, and auth, which tells what rights are
// needed.
package check
