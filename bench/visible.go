package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// visibleTypes are the types of the workflows of V.
const visibleTypes = 20

func visibleType(i int) string { return fmt.Sprintf("visible-%02d", i%visibleTypes) }

const fourConditions = "type IN ('visible-01', 'visible-02', 'visible-03') AND " +
	"status != completed AND region = 'region-2' AND priority > 3"

// questions are what people ask about many workflows: for some runs if there is a LIMIT, else for counts.
var questions = []struct{ name, text string }{
	{"01-count-by-status", "GROUP BY status"},
	{"02-open-of-a-type", "status = open AND type = 'visible-07' LIMIT 50"},
	{"03-failed-in-a-day", "status = failed AND closed > now-24h LIMIT 50"},
	{"04-count-type-status-day", "type = 'visible-07' AND status = completed AND started > now-24h"},
	{"05-one-customer", "customer = 'customer-00017' LIMIT 50"},
	{"06-id-prefix", "id STARTS_WITH 'visible-0001' LIMIT 50"},
	{"07-closed-in-an-hour-by-type", "closed > now-1h GROUP BY type"},
	{"08-four-conditions", fourConditions + " AND started > now-24h LIMIT 50"},
	{"09-count-of-four-conditions", fourConditions},
	{"10-id-contains", "id CONTAINS '00977' LIMIT 50"},
	{"11-unique-attribute", "order = 'order-00000977' LIMIT 50"},
	{"12-failed-by-region", "status = failed GROUP BY region"},
}

// limited tells questions for runs from those for counts.
func limited(text string) bool { return strings.Contains(text, " LIMIT ") }

// asks is how often each question is asked.
const asks = 20

// visible is V: workflows with attributes, half of which stay open, a tenth of which fail, and what
// people ask about them.
func (b *bench) visible(ctx context.Context, l *line) (err error) {
	l.Workflows = cmp.Or(b.o.n, 20_000)
	outstanding, err := b.outstanding(1)
	if err != nil {
		return err
	}
	began := time.Now()
	l.took, err = atOnce(ctx, outstanding, l.Workflows, b.startVisible)
	if err != nil {
		return err
	}
	l.Starts = float64(l.Workflows) / time.Since(began).Seconds()
	if err := b.awaitIndex(ctx, l.Workflows/2); err != nil {
		return err
	}
	l.IndexedMS = millis(time.Since(began))
	l.Asked, l.AskedMost = map[string]float64{}, map[string]float64{}
	for _, q := range questions {
		var took []time.Duration
		for range asks {
			began := time.Now()
			if err := b.ask(ctx, q.text); err != nil {
				return fmt.Errorf("%s: %w", q.text, err)
			}
			took = append(took, time.Since(began))
		}
		l.Asked[q.name], l.AskedMost[q.name] = millis(quantile(took, 50)), millis(quantile(took, 100))
	}
	return nil
}

func (b *bench) startVisible(ctx context.Context, i int) error {
	kind := "open"
	if i%2 == 1 {
		kind = "done"
	}
	if i%10 == 1 {
		kind = "fails"
	}
	_, err := b.client.Start(ctx, visibleType(i/10), job{Kind: kind}, &drover.StartOptions{
		ID: fmt.Sprintf("visible-%07d", i),
		Attributes: map[string]string{
			"customer": fmt.Sprintf("customer-%05d", i*7%50_000), "region": fmt.Sprintf("region-%d", i/3%5),
			"priority": strconv.Itoa(i / 7 % 10), "order": fmt.Sprintf("order-%08d", i),
		},
	})
	return err
}

// awaitIndex waits until the index knows that so many workflows of V have closed, and has read all histories.
func (b *bench) awaitIndex(ctx context.Context, closed int) error {
	for {
		a, err := b.client.Groups(ctx, "id STARTS_WITH 'visible-' AND status = closed", nil)
		if err != nil {
			return err
		}
		if a.Total >= int64(closed) && a.Index.Lag == 0 && a.Index.Building == 0 {
			return nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the index has %d of %d closed workflows, %d records are unread: %w",
				a.Total, closed, a.Index.Lag, err)
		}
	}
}

// ask asks one question: for a page of runs if it has a limit, else for counts.
func (b *bench) ask(ctx context.Context, text string) error {
	if !limited(text) {
		_, err := b.client.Groups(ctx, text, nil)
		return err
	}
	for _, err := range b.client.Query(ctx, text, nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

// restartVisible counts how long a new server takes until it answers about all workflows of the store.
func restartVisible(ctx context.Context, b *bench, l *line) error {
	began := time.Now()
	if err := restart(ctx, b, l); err != nil {
		return err
	}
	if err := b.awaitIndex(ctx, l.Workflows/2); err != nil {
		return err
	}
	l.IndexRestartMS = millis(time.Since(began))
	return nil
}

// decideVisible does what the workflows of V do: one thing, or nothing for ever.
func decideVisible(_ context.Context, t *decider.Task) ([]schemas.Decision, error) {
	for _, e := range t.Events() {
		a, ok := e.Attributes.(*schemas.WorkflowStarted)
		if !ok {
			continue
		}
		var j job
		if err := a.Input.Decode(&j); err != nil {
			return nil, err
		}
		switch j.Kind {
		case "done":
			return []schemas.Decision{decider.Complete("done")}, nil
		case "fails":
			return []schemas.Decision{decider.Fail("the address of the customer is unknown", nil)}, nil
		}
	}
	return nil, nil
}
