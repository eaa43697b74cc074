package claims

import "time"

// A claim that is not renewed is over by the clock of whoever looks, too. Its holder counts from
// before the write that was seen, so it has no lease any more when that write has been seen for as
// long as the claim lasts (P-16). By the server's stamps the claim may seem to last for longer: for
// as much as the server's clock is after that by which they were made, because it was set back, or
// because the bucket's leader died with its machine and one with a slower clock has followed.

// firstLook is the first look at a claim as it stands.
type firstLook struct {
	revision uint64
	first    time.Time // local, when it had been read
}

// unchanged tells whether a claim, which was just read, has been seen as it is for as long as it
// lasts.
func (c *Claims) unchanged(e *entry) bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.absent {
		delete(c.firstLooks, e.key)
		return false
	}
	s, ok := c.firstLooks[e.key]
	if !ok || s.revision != e.revision {
		s = firstLook{e.revision, now}
		c.firstLooks[e.key] = s
	}
	return now.Sub(s.first) >= e.lasts+margin
}

// retain forgets what is not in the bucket any more.
func (c *Claims) retain(listed []Info) {
	keys := make(map[string]bool, len(listed))
	for k := range listed {
		keys[listed[k].Key] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.firstLooks {
		if !keys[key] {
			delete(c.firstLooks, key)
		}
	}
}
