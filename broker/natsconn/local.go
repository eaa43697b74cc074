package natsconn

// Local returns what stands under a key on this connection. It is made the first time. So parts of
// one process that share a connection, and may not import each other, find each other; two
// connections know nothing of each other.
func (c *Conn) Local(key any, create func() any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.locals[key]
	if !ok {
		if c.locals == nil {
			c.locals = make(map[any]any)
		}
		v = create()
		c.locals[key] = v
	}
	return v
}
