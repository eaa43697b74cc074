package listen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// ErrFeatures says that a broker lacks what a decider needs.
var ErrFeatures = errors.New("a broker lacks features that a decider of this worker needs")

// lackingError is why a worker does not serve, or serves no more.
type lackingError struct{ text string }

func (e *lackingError) Error() string {
	return "decider worker: " + ErrFeatures.Error() + ": " + e.text
}

func (*lackingError) Unwrap() error { return ErrFeatures }

// askAgain is the time between two questions while no broker has answered.
const askAgain = time.Second

// capable returns when a broker of the namespace has said that it has what is needed, or ctx ends.
// A broker that lacks some of it ends ctx with a [*lackingError], also later: it may be slow, or be
// met after a reconnect. One is enough, since a run may move to its partitions' owner of tomorrow.
// The function that is returned ends the questions; it is never nil.
func (l *Listener) capable(ctx context.Context, end context.CancelCauseFunc) (func(), error) {
	l.brokers = l.Conn.NATS().NewInbox()
	heard := make(chan struct{}, 1)
	sub, err := l.Conn.Subscribe(l.brokers, "", func(m natsconn.Msg) {
		switch lacks, ours := l.lacks(m.Data); {
		case !ours:
		case lacks != nil:
			end(lacks)
		default:
			select {
			case heard <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return func() {}, fmt.Errorf("decider worker: %w", err)
	}
	remove := l.Conn.OnRefused(func(e *natsconn.RefusedError) {
		if !e.Subscribe && e.Subject == schemas.BrokersSubject {
			end(&refusedError{what: "the features of brokers", RefusedError: e})
		}
	})
	forget := func() {
		remove()
		_ = sub.Close() // fails only with the connection
	}
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for waited := false; ; waited = true {
		err := l.askBrokers() // a connection that is down is tried again, too
		select {
		case <-heard:
			return forget, nil
		case <-ctx.Done():
			return forget, nil
		case <-again.C:
		}
		if !waited {
			l.Log.WithField("err", err).
				Warn("no broker answers: deciders listen as soon as one has said what it can do")
		}
	}
}

// askBrokers asks all of them who they are, if that matters.
func (l *Listener) askBrokers() error {
	if l.brokers == "" {
		return nil
	}
	return l.Conn.PublishReply(schemas.BrokersSubject, l.brokers, nil, nil)
}

// lacks reads what a broker says of itself: what it lacks, and whether it serves our namespace.
func (l *Listener) lacks(said []byte) (lacking error, ours bool) {
	var broker struct {
		Version  string            `json:"version"`
		Metadata map[string]string `json:"metadata"`
	}
	if json.Unmarshal(said, &broker) != nil || broker.Metadata["namespace"] != string(l.Namespace) {
		return nil, false
	}
	has := strings.Fields(broker.Metadata[schemas.FeaturesKey])
	var lacks []schemas.Feature
	for _, f := range l.Needs {
		if !slices.Contains(has, string(f)) {
			lacks = append(lacks, f)
		}
	}
	if len(lacks) == 0 {
		return nil, true
	}
	return &lackingError{fmt.Sprintf("that of the node %q, version %s, lacks %s: "+
		"upgrade all brokers of the namespace %s, then start this worker again",
		broker.Metadata["node"], broker.Version, schemas.FeatureNames(lacks), l.Namespace)}, true
}
