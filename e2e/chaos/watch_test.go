package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	probeEvery = 50 * time.Millisecond
	probeTime  = 300 * time.Millisecond
)

// probe asks the owner of each partition, past all proxies, until ctx ends.
func (w *world) probe(ctx context.Context) {
	for n, id := range w.probes {
		w.wg.Go(func() {
			body, err := schemas.Marshal(&schemas.ExecutionRequest{V: schemas.Version, WorkflowID: id})
			if err != nil {
				panic(err) // it always has a form
			}
			for ctx.Err() == nil {
				began := time.Now()
				w.rec.Do(Op{Client: -2, Kind: Probe, Key: fmt.Sprint(n)}, func(o *Op) {
					one, cancel := context.WithTimeout(ctx, probeTime)
					defer cancel()
					m, err := natsconn.Of(w.direct).Request(one, namespace.API("describe"), natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}, body)
					o.Outcome = Unknown
					var d schemas.DescribeResponse
					if err == nil && schemas.Unmarshal(m.Data, &d) == nil && d.Error == nil {
						o.Outcome, o.Result = OK, d.Owner
					}
				})
				sleep.For(ctx, probeEvery-time.Since(began))
			}
		})
	}
}

// watch follows the claims of the namespace: their numbers grow with each holder, and one number has one holder.
func (w *world) watch(ctx context.Context) {
	type held struct {
		number uint64
		node   string
	}
	last := map[string]held{}
	see := func(key string, value []byte, rev uint64, deleted bool) {
		var v struct {
			Node   string `json:"node"`
			Number uint64 `json:"number"`
		}
		if deleted || json.Unmarshal(value, &v) != nil {
			return
		}
		if v.Number == 0 { // the write that takes a claim is its number
			v.Number = rev
		}
		before, now := last[key], held{v.Number, v.Node}
		if now.number < before.number || now.number == before.number && now.node != before.node {
			w.violation("claim %s: %+v follows %+v", key, now, before)
		}
		last[key] = now
	}
	for ctx.Err() == nil {
		r, err := natsconn.Of(w.direct).KVWatch(ctx, namespace.BucketClaims(), see)
		if err != nil {
			sleep.For(ctx, 100*time.Millisecond)
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.Done():
		}
		r.Close()
	}
}
