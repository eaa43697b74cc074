package payloads_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// answering says what a broker says of an upload.
func answering(t *testing.T) func(natsconn.Msg, schemas.UploadResponse) {
	return func(m natsconn.Msg, a schemas.UploadResponse) {
		body, err := json.Marshal(a)
		if err == nil {
			err = m.Respond(nil, body)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A chunk is not larger than this side's server takes, whatever the broker's does: they may be connected to different ones.
func TestUploadByAServerThatTakesLess(t *testing.T) {
	const ns = subject.Namespace("default")
	conn := embeddedtest.Connect(t, embeddedtest.Serve(t, embedded.Options{DontListen: true, MaxPayload: 128 << 10}))
	content := make([]byte, 300<<10)
	answer := answering(t)
	var stored int64
	if _, err := conn.Subscribe(ns.API("upload"), "", func(m natsconn.Msg) {
		answer(m, schemas.UploadResponse{V: schemas.Version, Subject: ns.API("upload") + ".broker.one", ChunkBytes: 128 << 10})
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Subscribe(ns.API("upload")+".>", "", func(m natsconn.Msg) {
		stored += int64(len(m.Data))
		a := schemas.UploadResponse{V: schemas.Version, Offset: stored}
		if stored == int64(len(content)) {
			a.Ref = &schemas.PayloadRef{Object: "o", Size: stored}
		}
		answer(m, a)
	}); err != nil {
		t.Fatal(err)
	}
	ref, err := payloads.NewClient(conn, ns, time.Second).Upload(t.Context(), content)
	if err != nil || ref.Size != int64(len(content)) {
		t.Fatalf("got %+v, %v", ref, err)
	}
}

// After a link that carries one chunk a second, many large payloads that come together are each sent once: those that would not be answered
// in time are not sent before there is room for them.
func TestUploadsOverASlowLink(t *testing.T) {
	const (
		ns    = subject.Namespace("default")
		chunk = 128 << 10
		many  = 12
	)
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Connect(t, embeddedtest.Serve(t, embedded.Options{DontListen: true}))
		content := make([]byte, 2*chunk)
		answer := answering(t)
		begun, came := 0, 0
		if _, err := conn.Subscribe(ns.API("upload"), "", func(m natsconn.Msg) {
			begun++
			answer(m, schemas.UploadResponse{V: schemas.Version, Subject: fmt.Sprintf("%s.broker.%d", ns.API("upload"), begun), ChunkBytes: chunk})
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Subscribe(ns.API("upload")+".>", "", func(m natsconn.Msg) {
			time.Sleep(time.Second)
			came++
			_, offset, _ := subject.ParseUploadChunk(m.Subject)
			a := schemas.UploadResponse{V: schemas.Version, Offset: offset + int64(len(m.Data))}
			if a.Offset == int64(len(content)) {
				a.Ref = &schemas.PayloadRef{Object: "o", Size: a.Offset}
			}
			answer(m, a)
		}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() {
				if _, err := payloads.NewClient(conn, ns, 10*time.Second).Upload(t.Context(), content); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if begun != many || came != 2*many {
			t.Errorf("got %d uploads with %d chunks, want %d with %d: some were sent again", begun, came, many, 2*many)
		}
	})
}
