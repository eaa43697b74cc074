package timers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers"
)

func TestUnreadableAlarmIsBuried(t *testing.T) {
	good := func(a schemas.Alarm) string {
		b, err := schemas.Marshal(&a)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, tc := range []struct{ name, subject, body, want string }{
		{"empty", ns.Alarm(0, "w", "RUN"), "", "empty"},
		{"no alarm", ns.Alarm(0, "w", "RUN"), "hello", "unknown version"},
		{"hostile msgpack", ns.Alarm(0, "w", "RUN"), "\x01\xdd\xff\xff\xff\xff", "malformed"},
		{"another version", ns.Alarm(0, "w", "RUN"), `{"v":9,"run":"RUN","due":"2000-01-01T00:00:00Z"}`, `"v" is 9`},
		{"no due time", ns.Alarm(0, "w", "RUN"), good(schemas.Alarm{Run: "RUN"}), "no due time"},
		{"another run", ns.Alarm(0, "w", "RUN"), good(schemas.Alarm{Run: "OTHER", Due: 1}), `"OTHER"`},
		{"bad subject", "drover.default.alarm.0.w", good(schemas.Alarm{Run: "RUN", Due: 1}), "invalid subject"},
	} {
		t.Run("bad input: body/"+tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w, _ := r.worker("n1")
				r.start(w)
				seq := r.put(tc.subject, []byte(tc.body))
				r.pending(0)
				m, err := r.conn.LastBySubject(t.Context(), ns.StreamDead(), fmt.Sprintf("drover.default.dead.undecodable-alarm.0.alarms.*.%d", seq))
				if err != nil {
					t.Fatal(err)
				}
				var letter schemas.DeadLetter
				if err := schemas.Unmarshal(m.Data, &letter); err != nil {
					t.Fatal(err)
				}
				if string(letter.Body) != tc.body || letter.Subject != tc.subject || !strings.Contains(letter.Details, tc.want) {
					t.Fatalf("got letter %+v, want the alarm and %q", letter, tc.want)
				}
				r.expectOne("w", time.Now().Add(time.Minute)) // the worker lives
				r.quiet(2 * time.Minute)
			})
		})
	}
}

func TestJSONAlarmFires(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w, _ := r.worker("n1")
		r.start(w)
		due := time.Now().Add(time.Minute)
		seq := r.put(ns.Alarm(0, "w", "RUN"), fmt.Appendf(nil, `{"run":"RUN","due":%q}`, due.UTC().Format(time.RFC3339Nano)))
		r.expect("w", due, seq)
	})
}

// A worker that cannot hold all alarms says so, and gives its place to another that may have the room.
func TestTooManyAlarmsEndTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		conn := r.dial()
		c, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: "n1", TTL: claimTTL, Logger: r.logger})
		if err != nil {
			t.Fatal(err)
		}
		w := timers.New(conn, &timers.Options{Partitions: 1, Claims: c})
		w.SetMostAlarms(1)
		due := time.Now().Add(10 * time.Minute)
		r.arm("a", due)
		r.arm("b", due)
		stop := r.start(w)
		r.quiet(5 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if e := r.log.LastEntry(); e == nil || !strings.Contains(fmt.Sprint(e.Data["err"]), "more than 1 runs with one: give the namespace more partitions") {
			t.Errorf("got log entry %v, want what is wrong and the way out", e)
		}
		w, _ = r.worker("n2")
		r.start(w)
		for range 2 {
			r.next()
		}
	})
}

func TestOptions(t *testing.T) {
	c := &claims.Claims{}
	for _, tc := range []struct {
		name string
		o    *timers.Options
		want string
	}{
		{"none", nil, "Partitions is 0"},
		{"a bad namespace", &timers.Options{Namespace: "a.b", Partitions: 1, Claims: c}, "Namespace"},
		{"no partitions", &timers.Options{Claims: c}, "Partitions is 0"},
		{"no claims", &timers.Options{Partitions: 1}, "Claims is missing"},
		{"no connection", &timers.Options{Partitions: 1, Claims: c}, "nil connection"},
	} {
		t.Run("bad input: options/"+tc.name, func(t *testing.T) {
			err := timers.New(nil, tc.o).Run(t.Context())
			if !errors.Is(err, timers.ErrInvalidOptions) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want ErrInvalidOptions and %q", err, tc.want)
			}
		})
	}
	if got, want := (timers.Options{Partitions: 4, Node: "n"}).String(), "namespace=default partitions=4 node=n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
