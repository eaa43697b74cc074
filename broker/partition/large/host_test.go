package large_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// fakeHost is a partition that notes what it is to do.
type fakeHost struct {
	t      *testing.T
	o      *envtest.Owner
	sealed bool

	steps    []execution.Message
	verdicts []actor.Verdict
	loaded   int // how often a run was to go on
}

// newHost returns a host and what it has made.
func newHost(t *testing.T, o *envtest.Owner) (*fakeHost, *large.Large) {
	h := &fakeHost{t: t, o: o}
	return h, large.New(h, o.Owner)
}

func (h *fakeHost) Now() schemas.Timestamp              { return h.o.Env.Now() }
func (h *fakeHost) Sealed() bool                        { return h.sealed }
func (h *fakeHost) Loaded(*actor.Run)                   { h.loaded++ }
func (h *fakeHost) Step(_ *actor.Run, e *actor.Message) { h.steps = append(h.steps, e.Event) }
func (h *fakeHost) SettleStart(_ *actor.Run, _ *actor.Message, v actor.Verdict) {
	h.verdicts = append(h.verdicts, v)
}

// storeFails has the next writes to the store, which is not made yet, end with what fail returns.
func (h *fakeHost) storeFails(fail func() error) {
	sound := h.o.Env.Store
	h.o.Env.Store = payloads.NewStore(h.o.Env.Conn, h.o.Env.NS, func(ctx context.Context) error {
		if err := fail(); err != nil {
			return err
		}
		_, err := sound.Put(ctx, "first", nil)
		return err
	})
}

// wantMoved tells whether a payload is a reference to this content, or the content itself.
func (h *fakeHost) wantMoved(what string, got, content schemas.Payload, moved bool) {
	h.t.Helper()
	ref, is := got.Ref()
	if is != moved {
		h.t.Errorf("%s is a reference: %v, want %v", what, is, moved)
		return
	}
	if is {
		var err error
		if got, _, err = h.o.Env.Store.Read(h.t.Context(), ref.Object, "", 64<<20); err != nil {
			h.t.Errorf("%s: %v", what, err)
		}
	}
	if !bytes.Equal(got, content) {
		h.t.Errorf("%s has %d bytes, want the %d that came", what, len(got), len(content))
	}
}

// stands tells whether the store has an object of a name.
func (h *fakeHost) stands(object string) bool {
	_, _, err := h.o.Env.Store.Read(h.t.Context(), object, "", 1)
	return err == nil
}

// text is a payload that takes a part of the largest body, in percent, and no more in JSON.
func (h *fakeHost) text(percent int) schemas.Payload {
	return schemas.Payload(bytes.Repeat([]byte("x"), h.o.Env.BodyLimit()*percent/100))
}

// bytes is a payload that takes a third more in JSON.
func (h *fakeHost) bytes(percent int) schemas.Payload {
	return bytes.Repeat([]byte{0xff}, h.o.Env.BodyLimit()*percent/100)
}
