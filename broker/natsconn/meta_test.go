package natsconn

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

func TestParseDelivery(t *testing.T) {
	want := delivery{consumer: "C", delivered: 2, stream: 30, sequence: 4, time: time.Unix(0, 1700000000000000001).UTC(), pending: 6}
	for _, reply := range []string{
		"$JS.ACK.S.C.2.30.4.1700000000000000001.6",
		"$JS.ACK._.hash.S.C.2.30.4.1700000000000000001.6",
		"$JS.ACK.hub.hash.S.C.2.30.4.1700000000000000001.6.random",
		"$JS.ACK.hub.hash.S.C.2.30.4.1700000000000000001.6.random.more",
	} {
		got, err := parseDelivery(reply)
		if err != nil {
			t.Fatalf("%s: %v", reply, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(delivery{})); diff != "" {
			t.Fatalf("%s: %s", reply, diff)
		}
	}
	for _, reply := range []string{
		"", "$JS.ACK.", "_INBOX.x", "$JS.FC.S.C.x", "$JS.ACK.S.C.2.30.4.5", "$JS.ACK.S.C.2.30.4.5.6.7", "$JS.ACK.S.C.x.30.4.5.6",
		"$JS.ACK.S.C.2.-30.4.5.6", "$JS.ACK.S.C.2.30.4.5.", "$JS.ACK.S.C.2.99999999999999999999.4.5.6",
	} {
		if d, err := parseDelivery(reply); !errors.Is(err, ErrInvalid) {
			t.Fatalf("%q: got %+v, %v, want ErrInvalid", reply, d, err)
		}
	}
	reply := "$JS.ACK.S.C.2.30.4.1700000000000000001.6"
	if n := testing.AllocsPerRun(100, func() { _, _ = parseDelivery(reply) }); n != 0 {
		t.Fatalf("got %v allocations, want 0", n)
	}
}

func FuzzParseDelivery(f *testing.F) {
	f.Add("$JS.ACK.S.C.2.30.4.5.6")
	f.Add("$JS.ACK.hub.hash.S.C.2.30.4.5.6.random")
	f.Fuzz(func(t *testing.T, reply string) {
		d, err := parseDelivery(reply)
		if err != nil && d != (delivery{}) {
			t.Fatalf("%q: got %+v beside an error", reply, d)
		}
	})
}

func TestParseAck(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		want       Ack
		err        error
	}{
		{"usual", `{"stream":"S","seq":12}`, Ack{Seq: 12}, nil},
		{"spaces", `{"stream":"S", "seq": 12}`, Ack{Seq: 12}, nil},
		{"domain", `{"stream":"S","domain":"hub","seq":12}`, Ack{Seq: 12}, nil},
		{"duplicate", `{"stream":"S","seq":12,"duplicate": true}`, Ack{Seq: 12, Duplicate: true}, nil},
		{"largest", `{"stream":"S","seq":18446744073709551615}`, Ack{Seq: 18446744073709551615}, nil},
		{"wrong sequence", `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 5"},"stream":"S","seq":0}`, Ack{}, ErrWrongSequence},
		{"wrong sequence without number", `{"error":{"code":400,"err_code":10071,"description":"other words"},"stream":"S"}`, Ack{}, ErrWrongSequence},
		{"in flight", `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"S","seq":0}`, Ack{}, ErrInFlight},
		{"too large", `{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"S","seq":0}`, Ack{}, ErrTooLarge},
		{"full stream", `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"S","seq":0}`, Ack{}, ErrFull},
		{"full account", `{"error":{"code":400,"err_code":10002,"description":"resource limits exceeded for account"},"stream":"S","seq":0}`, Ack{}, ErrFull},
		{"full server", `{"error":{"code":503,"err_code":10023,"description":"insufficient resources"},"stream":"S","seq":0}`, Ack{}, ErrFull},
		{"overflow", `{"stream":"S","seq":18446744073709551616}`, Ack{}, ErrTimeout},
		{"no sequence", `{"stream":"S","seq":0}`, Ack{}, ErrTimeout},
		{"somebody's reply", `{}`, Ack{}, ErrTimeout},
		{"text", `+OK`, Ack{}, ErrTimeout},
		{"empty", ``, Ack{}, ErrTimeout},
		{"cut", `{"stream":"S","seq":12`, Ack{}, ErrTimeout},
		{"leading zero", `{"stream":"S","seq":012}`, Ack{}, ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := parseAck(&nats.Msg{Data: []byte(tt.data)})
			if !errors.Is(got.Err, tt.err) || (got.Err == nil) != (tt.err == nil) || got.Seq != tt.want.Seq || got.Duplicate != tt.want.Duplicate {
				t.Fatalf("got %+v, want %+v, %v", got, tt.want, tt.err)
			}
		})
	}
	other := parseAck(&nats.Msg{Data: []byte(`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}`)})
	if e, ok := errors.AsType[*APIError](other.Err); !ok || e.ErrCode != 10077 || e.Code != 503 {
		t.Fatalf("got %v, want APIError 10077", other.Err)
	}
}

// The fast path and encoding/json agree on every input that the fast path takes.
func FuzzParseAck(f *testing.F) {
	f.Add([]byte(`{"stream":"S","seq":12}`))
	f.Add([]byte(`{"stream":"S", "seq": 12}`))
	f.Add([]byte(`{"stream":"S","seq":12,"duplicate":true}`))
	f.Add([]byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 5"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		parseAck(&nats.Msg{Data: data})
		seq, ok := fastAck(data)
		if !ok {
			return
		}
		var slow struct {
			Stream string `json:"stream"`
			Seq    uint64 `json:"seq"`
		}
		// A quote or a control byte in a stream name is not JSON; the server cannot make such a name.
		if err := json.Unmarshal(data, &slow); err == nil && slow.Seq != seq {
			t.Fatalf("%q: fast %d, slow %d", data, seq, slow.Seq)
		}
	})
}

func TestTTLRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Nanosecond: "1s", time.Second: "1s", time.Second + 1: "2s", 10 * time.Second: "10s", 3500 * time.Millisecond: "4s", 0: "", -time.Second: "",
	} {
		h := Header{}
		expireAfter(h, d)
		if got := h.Get(headerTTL); got != want {
			t.Fatalf("%v: got %q, want %q", d, got, want)
		}
	}
	h := Header{}
	ExpectLastSeq(h, 7)
	ExpectLastSubjectSeq(h, 0)
	if h.Get(headerExpectLastSeq) != strconv.Itoa(7) || h.Get(headerExpectLastSubjectSeq) != "0" {
		t.Fatalf("got %v", h)
	}
}
