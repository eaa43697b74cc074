package drover_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Behind a link that carries one of them in two seconds, many large requests that are made together are each sent once, and all are answered.
func TestLargeRequestsOverASlowLink(t *testing.T) {
	const many = 12
	virtual.Run(t, func(t *testing.T) {
		conn := embeddedtest.Connect(t, embeddedtest.Serve(t, embedded.Options{DontListen: true}))
		body, err := schemas.MarshalJSON(&schemas.StartResponse{V: schemas.Version, WorkflowID: "o", Run: "r1", Started: true})
		if err != nil {
			t.Fatal(err)
		}
		came := 0
		if _, err := conn.Subscribe("drover.default.api.start", "", func(m post.Msg) {
			time.Sleep(2 * time.Second)
			came++
			if err := m.Respond(nil, body); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: conn})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				if _, err := c.Start(t.Context(), "order", make([]byte, 140<<10), &drover.StartOptions{ID: fmt.Sprint("o", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if came != many {
			t.Errorf("got %d requests, want %d: some were sent again", came, many)
		}
	})
}
