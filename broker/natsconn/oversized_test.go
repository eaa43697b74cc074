package natsconn

import (
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// A reload that makes max_payload smaller tells nobody. Who sends more than that is cut off, connects again, and knows.
func TestReloadOfASmallerMaxPayload(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		o := serverOptions(t)
		o.MaxPayload = 1 << 20
		srv, stop := start(t, o)
		t.Cleanup(stop)
		c := dial(t, Options{InProcess: srv})
		stream(t, c)
		if _, err := c.PublishSync(t.Context(), "s.a", nil, make([]byte, 200<<10)); err != nil {
			t.Fatal(err)
		}
		smaller := o.Clone()
		smaller.MaxPayload = 128 << 10
		if err := srv.ReloadOptions(smaller); err != nil {
			t.Fatal(err)
		}
		for _, want := range []error{ErrTimeout, ErrTooLarge} { // the first is cut off
			_, err := c.PublishSync(t.Context(), "s.b", nil, make([]byte, 200<<10))
			wantErr(t, err, want)
		}
		if _, err := c.PublishSync(t.Context(), "s.c", nil, make([]byte, 100<<10)); err != nil || c.MaxPayload() != 128<<10 {
			t.Fatalf("got %v, and a max_payload of %d", err, c.MaxPayload())
		}
	})
}

// What a message ends with is no word of the server, also if it stands alone in what is read.
func TestMessageThatEndsAsARefusal(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		got := make(chan string, 2)
		if _, err := c.Subscribe("words", "", func(m Msg) { got <- string(m.Data) }); err != nil {
			t.Fatal(err)
		}
		word := string(oversized[:len(oversized)-2])
		for range 2 {
			if err := c.Publish("words", nil, []byte(word)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * oversizedLook)
		}
		for range 2 {
			select {
			case s := <-got:
				if s != word {
					t.Errorf("got %q", s)
				}
			case <-time.After(time.Minute):
				t.Fatal("a message is lost")
			}
		}
		if n := c.Dials(); n != 1 {
			t.Errorf("connected %d times", n)
		}
	})
}
