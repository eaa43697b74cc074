package coroutine

// Live is how many coroutines have not ended.
func (d *Dispatcher) Live() (n int) {
	for c := d.youngest; c != nil; c = c.older {
		n++
	}
	return n
}
