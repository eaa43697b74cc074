// Package uuid has the names that the tool knows.
package uuid

func NewString() string { return "" }

func Parse(s string) (string, error) { return s, nil }
