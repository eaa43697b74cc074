package jsonschema

// Glossary gives the tests what no program needs.
func Glossary() (fields, ofValues map[string]string) { return glossary, values }
