package natsconn

// chanMutex is a lock that is held while user code runs. It is a channel, because waiting for a
// mutex would stop virtual time while that code sleeps.
type chanMutex chan struct{}

func (t chanMutex) lock()   { t <- struct{}{} }
func (t chanMutex) unlock() { <-t }

func (t chanMutex) tryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}
