package ops

// Leading tells whether this node is the master at this moment.
func (m *Master) Leading() bool {
	l := m.lease.Load()
	return l != nil && l.Valid()
}
