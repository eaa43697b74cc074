package claims_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
)

// The mark by which the server removes an expired key may be stored after whatever was written over that key, and wipes it out:
// two nodes held claim chaos.1 (chaos, seed 613, cluster).
func TestNothingIsWrittenOverAClaim(t *testing.T) { // P-16
	for name, claim := range map[string]func(t *testing.T, s *embedded.Server){
		"that has expired": func(t *testing.T, s *embedded.Server) {
			a := join(t, s, claims.Options{Node: "a"})
			value := `{"node":"old","nonce":"x-1","since":"2000-01-01T00:00:00Z","deadline":"2000-01-01T00:00:05Z","ttl":5}`
			if _, err := a.conn.KVCreate(t.Context(), bucket, key, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			a.take(t, key)
		},
		"that it has written without knowing": func(t *testing.T, s *embedded.Server) {
			w := cutwire.New(s.Conn())
			conn := embeddedtest.Through(t, w)
			book, err := claims.Open(conn, bucket, claims.Options{Node: "a"})
			if err != nil {
				t.Fatal(err)
			}
			written := false // every answer from then on is lost
			w.Judge(func(subj string, _ []byte) cutwire.Verdict {
				if written = written || strings.HasPrefix(subj, "$KV."); written {
					return cutwire.Unanswered
				}
				return cutwire.Pass
			})
			if l, err := book.TryAcquire(t.Context(), key); err == nil {
				t.Fatalf("got %v without an answer", l)
			}
			w.Judge(nil)
			a := &peer{Claims: book, conn: conn}
			a.take(t, key)
		},
		"of an earlier start of its store": func(t *testing.T, s *embedded.Server) {
			join(t, s, claims.Options{Node: "a", StoreID: "S", Boot: "1"}).take(t, key)
			join(t, s, claims.Options{Node: "a", StoreID: "S", Boot: "2"}).take(t, key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				admin := embeddedtest.Connect(t, s)
				if _, err := admin.JetStream().UpdateKeyValue(t.Context(), jetstream.KeyValueConfig{
					Bucket: bucket, Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Minute, History: 64,
				}); err != nil {
					t.Fatal(err)
				}
				claim(t, s)
				var last natsconn.Stored
				takes := 0
				err := admin.Scan(t.Context(), "KV_"+bucket, natsconn.ReadOptions{}, func(m natsconn.Stored) error {
					var v struct{ Number uint64 }
					if len(m.Data) > 0 && json.Unmarshal(m.Data, &v) == nil && v.Number == 0 {
						if takes++; len(last.Data) > 0 {
							t.Errorf("message %d takes the key over the claim %s", m.Seq, last.Data)
						}
					}
					last = m
					return nil
				})
				if err != nil || takes < 2 {
					t.Fatalf("got %d claims, %v, want two at least", takes, err)
				}
			})
		})
	}
}
