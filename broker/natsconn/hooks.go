package natsconn

import "sync"

// hooks are functions to call at an event. A mutex of their owner guards them.
type hooks[F any] map[*F]struct{}

// add takes fn until remove is called. The caller holds mu, and remove takes it.
func (h hooks[F]) add(mu *sync.Mutex, fn F) (remove func()) {
	h[&fn] = struct{}{}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		delete(h, &fn)
	}
}

func (h hooks[F]) all() (all []F) {
	for fn := range h {
		all = append(all, *fn)
	}
	return all
}
