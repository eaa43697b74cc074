package claims

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
)

// A value that no Claims can have written tells nothing, and stands for the usual time.
func TestEntry(t *testing.T) {
	c, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	for body, ttl := range map[string]time.Duration{
		`{"node":"n","nonce":"x","ttl":1}`:    time.Second,
		`{"node":"n","nonce":"x","ttl":3600}`: time.Hour,
		`{"node":"n","nonce":"x","ttl":0.5}`:  0,
		`{"node":"n","nonce":"x","ttl":3601}`: 0,
		`{"node":"n","nonce":"x"}`:            0,
		`{"nonce":"x","ttl":20}`:              0,
		`{"node":"n","ttl":20}`:               0,
		`{"node":"n","nonce":"x","ttl":20`:    0,
		`{"node":"n","ttl":20,"nonce":7}`:     0,
		`mine`:                                0,
		``:                                    0,
	} {
		e := c.entry("k", &natsconn.Stored{Seq: 3, Time: at, Data: []byte(body)})
		malformed := ttl == 0
		if malformed {
			ttl = c.opts.TTL
		}
		if e.absent || e.malformed != malformed || (e.Node == "") != malformed || e.expires.Sub(at) != ttl {
			t.Errorf("%s: got %+v, lasts %v; want malformed %t, %v", body, e, e.expires.Sub(at), malformed, ttl)
		}
	}
	for _, h := range []natsconn.Header{{"KV-Operation": {"DEL"}}, {"Nats-Marker-Reason": {"MaxAge"}}} {
		if e := c.entry("k", &natsconn.Stored{Seq: 3, Header: h}); !e.absent || e.revision != 3 {
			t.Errorf("%v: got %+v, want that the key is free", h, e)
		}
	}
}
