// Package adapt has what learns from outcomes how much to try.
package adapt

// mostKeys bounds the keys that are known: their names may be anybody's. Those that are forgotten
// are tried again.
const mostKeys = 4096

// Backoff says for which occasions something is worth trying, by key: after 1, 2, 3, … failures in
// a row 1, 2, 4, … occasions are left out before the next try, and Most at most. A success ends
// that. It is not safe for concurrent use.
type Backoff[K comparable] struct {
	Most int // occasions that are left out after a failure; required

	failing map[K]*failures
}

type failures struct {
	row  int // in a row
	skip int // occasions that are still to be left out
}

// Skip tells whether this occasion is left out, and counts it then.
func (b *Backoff[K]) Skip(key K) bool {
	f := b.failing[key]
	if f == nil || f.skip == 0 {
		return false
	}
	f.skip--
	return true
}

// Failing tells whether the latest try has failed.
func (b *Backoff[K]) Failing(key K) bool { return b.failing[key] != nil }

// Note takes the outcome of a try.
func (b *Backoff[K]) Note(key K, success bool) {
	if success {
		delete(b.failing, key)
		return
	}
	f := b.failing[key]
	if f == nil {
		if b.failing == nil || len(b.failing) >= mostKeys {
			b.failing = make(map[K]*failures)
		}
		f = &failures{}
		b.failing[key] = f
	}
	f.row = min(f.row+1, 32)
	f.skip = min(1<<(f.row-1), b.Most)
}
