package drover_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// answered gives a client of a server that has answer in place of a broker.
func answered(t *testing.T, verb string, answer func(natsconn.Msg), timeout time.Duration) *drover.Client {
	t.Helper()
	conn := embeddedtest.Connect(t, embeddedtest.Serve(t, embedded.Options{DontListen: true}))
	if _, err := conn.Subscribe("drover.default.api."+verb, "", answer); err != nil {
		t.Fatal(err)
	}
	c, err := drover.Connect(t.Context(), &drover.Options{Conn: conn.NATS(), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// After a link that carries one of them in two seconds, many large requests that are made together are each sent once, and all are answered.
func TestLargeRequestsOverASlowLink(t *testing.T) {
	const many = 12
	virtual.Run(t, func(t *testing.T) {
		body, err := schemas.MarshalJSON(&schemas.StartResponse{V: schemas.Version, WorkflowID: "o", Run: "r1", Started: true})
		if err != nil {
			t.Fatal(err)
		}
		came := 0
		c := answered(t, "start", func(m natsconn.Msg) {
			time.Sleep(2 * time.Second)
			came++
			if err := m.Respond(nil, body); err != nil {
				t.Error(err)
			}
		}, 0)
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

// After a link that carries one of them in a second, many large results that are waited for together are each sent once: who waits asks
// for no more of them than the link carries.
func TestLargeResultsOverASlowLink(t *testing.T) {
	const many, size = 12, 140 << 10
	virtual.Run(t, func(t *testing.T) {
		sent := 0
		c := answered(t, "result", func(m natsconn.Msg) {
			var q schemas.ExecutionRequest
			if err := schemas.Unmarshal(m.Data, &q); err != nil {
				t.Error(err)
			}
			a := schemas.ResultResponse{V: schemas.Version, Run: "r1", Status: schemas.StatusCompleted, Large: size}
			if q.Inline == 0 || q.Inline >= size {
				time.Sleep(time.Second)
				sent++
				a.Result, a.Large = make([]byte, size), 0
			}
			body, err := schemas.Marshal(&a)
			if err == nil {
				err = m.Respond(nil, body)
			}
			if err != nil {
				t.Error(err)
			}
		}, 0)
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				if o, err := c.Run(fmt.Sprint("o", i), "").Wait(t.Context()); err != nil || len(o.Result) != size {
					t.Error(o, err)
				}
			})
		}
		wg.Wait()
		if sent != many {
			t.Errorf("%d results were sent, want %d: some were sent again", sent, many)
		}
	})
}

// Many large requests to servers that do not answer all end when their patience does, and not one after the other.
func TestLargeRequestsThatNobodyAnswers(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := answered(t, "start", func(natsconn.Msg) {}, 10*time.Second)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				_, err := c.Start(t.Context(), "order", make([]byte, 140<<10), &drover.StartOptions{ID: fmt.Sprint("o", i)})
				if !errors.Is(err, drover.ErrTimeout) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("took %v, want the patience of 10s", took)
		}
	})
}
