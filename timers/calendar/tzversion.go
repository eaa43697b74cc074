package calendar

// TZVersion says which database of time zones is used.
func TZVersion() string { return "unknown" }
