package runs

import "sync"

// pageIndex remembers where in the stream the next page of a history begins, so that paging through
// a long one does not read it from the start each time. It is a cache: forgetting costs a read.
type pageIndex struct {
	mu sync.Mutex
	at map[pageKey]uint64
}

// pageKey has the workflow id as well: who starts a run may choose its id, and nobody sees to it
// that two workflows have others.
type pageKey struct {
	wid, run string
	after    int64
}

func (i *pageIndex) get(wid, run string, after int64) uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(i.at[pageKey{wid, run, after}], 1)
}

func (i *pageIndex) put(wid, run string, after int64, seq uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.at == nil || len(i.at) >= 4096 {
		i.at = make(map[pageKey]uint64)
	}
	i.at[pageKey{wid, run, after}] = seq
}
