package syntax

// Cursor is a place in a text that is read from its beginning to its end.
type Cursor struct {
	Text string
	At   int // bytes from the beginning
}

// Rest is what has not been read.
func (c *Cursor) Rest() string { return c.Text[c.At:] }

// SkipSpace reads white space, if there is any.
func (c *Cursor) SkipSpace() { c.At = SkipSpace(c.Text, c.At) }

// Take skips white space, and reads b if it is next.
func (c *Cursor) Take(b byte) bool {
	c.SkipSpace()
	took := c.At < len(c.Text) && c.Text[c.At] == b
	if took {
		c.At++
	}
	return took
}

// While reads all bytes from here on that are of a kind, and returns them.
func (c *Cursor) While(kind func(byte) bool) string {
	from := c.At
	for c.At < len(c.Text) && kind(c.Text[c.At]) {
		c.At++
	}
	return c.Text[from:c.At]
}
