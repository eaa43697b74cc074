package natsconn

// turn is a lock that is held while user code runs. It is a channel, because waiting for a mutex
// would stop virtual time while that code sleeps.
type turn chan struct{}

func (t turn) lock()   { t <- struct{}{} }
func (t turn) unlock() { <-t }

func (t turn) tryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}
