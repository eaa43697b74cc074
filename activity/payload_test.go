package activity_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// takePayloads plays the part of a broker that takes and gives large payloads.
func (r *rig) takePayloads(limit int64) {
	r.t.Helper()
	store := payloads.NewStore(r.conn, ns, func(ctx context.Context) error { return topology.EnsurePayloads(ctx, r.conn, ns, "test") })
	uploads := payloads.NewUploads(store, limit, r.logger)
	r.t.Cleanup(uploads.Close)
	serve := func(subj string, answer func(natsconn.Msg) any) {
		if _, err := r.conn.Subscribe(subj, "", func(m natsconn.Msg) {
			body, err := schemas.MarshalJSON(answer(m))
			if err == nil {
				err = m.Respond(nil, body)
			}
			if err != nil {
				r.t.Errorf("%s: %v", m.Subject, err)
			}
		}); err != nil {
			r.t.Fatal(err)
		}
	}
	upload := func(a *schemas.UploadResponse, refused *schemas.Error) any {
		if refused != nil {
			return &schemas.UploadResponse{V: schemas.Version, Error: refused}
		}
		return a
	}
	serve(ns.API("upload"), func(m natsconn.Msg) any {
		var q schemas.UploadRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			r.t.Error(err)
		}
		return upload(uploads.Begin(&q))
	})
	serve(uploads.Subject(), func(m natsconn.Msg) any { return upload(uploads.Chunk(context.Background(), m.Subject, m.Data)) })
	serve(ns.API("download"), func(m natsconn.Msg) any {
		var q schemas.DownloadRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			r.t.Error(err)
		}
		a := &schemas.DownloadResponse{V: schemas.Version}
		var err error
		if a.Data, a.Next, err = store.Read(context.Background(), q.Object, q.Cursor, 512<<10); err != nil {
			a.Error = schemas.Errorf(schemas.CodeNotFound, "%v", err)
		}
		return a
	})
	if err := r.conn.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// fetch returns what a reference in a report refers to.
func (r *rig) fetch(p schemas.Payload) schemas.Payload {
	r.t.Helper()
	if _, ok := p.Ref(); !ok {
		r.t.Fatalf("got %d bytes, want a reference", len(p))
	}
	content, err := payloads.NewClient(r.conn, ns, time.Minute).Resolve(r.t.Context(), p)
	if err != nil {
		r.t.Fatal(err)
	}
	return content
}

func mirror(_ context.Context, in []byte) ([]byte, error) { return in, nil }

func TestLargePayloads(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.takePayloads(64 << 20)
		content := bytes.Repeat([]byte("0123456789"), 130_000) // more than a message holds
		ref, err := payloads.NewClient(r.conn, ns, time.Minute).Upload(t.Context(), content)
		if err != nil {
			t.Fatal(err)
		}
		w := r.worker()
		activity.Register(w, "work", mirror)
		activity.Register(w, "fail", func(_ context.Context, in []byte) ([]byte, error) { return nil, activity.Fail("large", in) })
		r.start(w)
		r.dispatch(func(t *schemas.ActivityTask) { t.Input = schemas.RefPayload(ref) })
		if got := r.fetch(r.next(schemas.ReportSuccess).Result); !bytes.Equal(got, content) {
			t.Fatalf("got %d bytes, want what the function returned", len(got))
		}
		r.dispatch(func(t *schemas.ActivityTask) { t.Type, t.Input = "fail", schemas.RefPayload(ref) })
		if got := r.fetch(r.next(schemas.ReportFailed).Details); !bytes.Equal(got, content) {
			t.Fatalf("got %d bytes, want the details", len(got))
		}
		r.settled("PCI")
	})
}

func TestInputThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.takePayloads(64 << 20)
		w := r.worker()
		activity.Register(w, "work", func(context.Context, []byte) ([]byte, error) {
			t.Error("it ran without its input")
			return nil, nil
		})
		r.start(w)
		gone := schemas.RefPayload(&schemas.PayloadRef{Object: "gone", Size: 300_000, Digest: strings.Repeat("0", 64)})
		r.dispatch(func(t *schemas.ActivityTask) { t.Input = gone })
		if got := r.next(schemas.ReportFailed); got.Reason != activity.ReasonPayload || !strings.Contains(string(got.Details), "gone") {
			t.Fatalf("got %s: %s, want %s", got.Reason, got.Details, activity.ReasonPayload)
		}
		r.settled("PCI")
	})
}

// While no broker is there, a result that fits goes along, and a larger one waits.
func TestLargeResultWithoutABroker(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", func(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil })
		r.start(w)
		r.dispatch(func(t *schemas.ActivityTask) { t.Input = textf("%d", 400<<10) })
		r.next(schemas.ReportStarted)
		if got := r.next(schemas.ReportSuccess); len(got.Result) != 400<<10 {
			t.Fatalf("got %d bytes, want the result itself", len(got.Result))
		}
		r.dispatch(func(t *schemas.ActivityTask) { t.Input, t.StartToClose = textf("%d", 2<<20), 0 })
		r.next(schemas.ReportStarted)
		r.quiet(time.Minute)
		r.takePayloads(64 << 20)
		if got := r.fetch(r.next(schemas.ReportSuccess).Result); len(got) != 2<<20 {
			t.Fatalf("got %d bytes, want the result", len(got))
		}
		r.settled("PCI")
	})
}
