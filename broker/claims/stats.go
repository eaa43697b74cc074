package claims

import "strings"

// Stats tells how many claims are held now, by the first word of their keys, and how many were lost
// since the beginning: neither given back nor given up with the connection.
func (c *Claims) Stats() (held map[string]int, lost int64) {
	held = map[string]int{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, l := range c.leases {
		if l != nil { // else it is being taken
			kind, _, _ := strings.Cut(key, ".")
			held[kind]++
		}
	}
	return held, c.lost.Load()
}
