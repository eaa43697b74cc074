package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// tape is what a run of a workload stored in streams: each message with its subject and its bytes, and by whom it was sent.
type tape struct {
	Workflows, Outstanding int
	Profile                string
	Partitions             int
	Streams                []spool
	Messages               []taped
}

// spool is a stream as it was, with the consumers that worked on it.
type spool struct {
	Config    jetstream.StreamConfig
	Consumers []jetstream.ConsumerConfig
}

// taped is one stored message. Its headers are part of the body: played again they would bid the server to do things.
type taped struct {
	Stream  int
	From    string // server, worker or load
	Subject string
	Body    []byte
}

// The processes of a run.
const (
	fromServer = "server"
	fromWorker = "worker"
	fromLoad   = "load"
)

// recorder is a subscriber that hears everything.
type recorder struct {
	b     *bench
	wants func(*nats.Msg) bool
	sub   *nats.Subscription
	conn  *nats.Conn
	mu    sync.Mutex
	all   []*nats.Msg
}

// record listens from now on. The copies that the server sends it take time, so a run that is recorded is not measured.
func (b *bench) record() (*recorder, error) {
	conn, err := nats.Connect(b.url)
	if err != nil {
		return nil, err
	}
	r := &recorder{b: b, conn: conn, wants: forStreams}
	return r, r.begin(context.Background())
}

// forStreams tells what may be on its way into a stream. Deliveries come by under the subject of the stored message as well.
func forStreams(m *nats.Msg) bool {
	return !strings.HasPrefix(m.Subject, "_INBOX.") && !strings.HasPrefix(m.Subject, "$JS.") && !strings.HasPrefix(m.Reply, "$JS.ACK.")
}

// begin listens.
func (r *recorder) begin(ctx context.Context) (err error) {
	if r.sub, err = r.conn.Subscribe(">", r.take); err != nil {
		return err
	}
	if err := r.sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	return r.flush(ctx)
}

// flush returns when the server has sent what it had for us.
func (r *recorder) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	return r.conn.FlushWithContext(ctx)
}

func (r *recorder) take(m *nats.Msg) {
	if !r.wants(m) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
}

// end ends the recording.
func (r *recorder) end(ctx context.Context) ([]*nats.Msg, error) {
	// What was sent before has come when nothing new comes, and all that has come is taken: on a busy machine that takes a while.
	for n, pending := -1, 0; n != r.count() || pending > 0; {
		n = r.count()
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
		if err := r.flush(ctx); err != nil {
			return nil, err
		}
		var err error
		if pending, _, err = r.sub.Pending(); err != nil {
			return nil, err
		}
	}
	err := r.sub.Unsubscribe()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all, err
}

// stop ends the recording and sorts the messages into the streams that took them.
func (r *recorder) stop(ctx context.Context) (*tape, error) {
	defer r.conn.Close()
	if _, err := r.end(ctx); err != nil {
		return nil, err
	}
	t := &tape{Profile: r.b.o.profile, Partitions: r.b.o.partitions}
	js := r.b.client.Conn().JetStream()
	streams := js.ListStreams(ctx)
	for s := range streams.Info() {
		sp := spool{Config: s.Config}
		if strings.HasPrefix(s.Config.Name, "KV_") {
			continue // claims, positions and node records come by the second, not by the workflow
		}
		stream, err := js.Stream(ctx, s.Config.Name)
		if err != nil {
			return nil, err
		}
		all := stream.ListConsumers(ctx)
		for c := range all.Info() {
			sp.Consumers = append(sp.Consumers, c.Config)
		}
		if err := all.Err(); err != nil {
			return nil, err
		}
		t.Streams = append(t.Streams, sp)
	}
	if err := streams.Err(); err != nil {
		return nil, err
	}
	return t, r.sort(t)
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// sort gives each message its stream and its sender. Names of reply subjects begin with letters that each process drew once:
// so the sender of a history's record is the server, the owner of the letters of our own client is the load, and all others
// are workers.
func (r *recorder) sort(t *tape) error {
	load := drawn(r.b.client.Conn().NATS().NewRespInbox())
	server := ""
	streamOf := func(m *nats.Msg) int {
		for i, s := range t.Streams {
			for _, filter := range s.Config.Subjects {
				if covers(filter, m.Subject) {
					return i
				}
			}
		}
		return -1
	}
	for _, m := range r.all {
		i := streamOf(m)
		if i < 0 {
			continue // a request to a service, or a word that is not stored
		}
		if server == "" && strings.Contains(t.Streams[i].Config.Name, "-history-") {
			server = drawn(m.Reply)
		}
		t.Messages = append(t.Messages, taped{Stream: i, From: drawn(m.Reply), Subject: m.Subject, Body: flat(m)})
	}
	if server == "" {
		return fmt.Errorf("none of %d messages is a record of a history", len(r.all))
	}
	for i := range t.Messages {
		switch m := &t.Messages[i]; m.From {
		case server, "": // the parts of a batch have no reply subject
			m.From = fromServer
		case load:
			m.From = fromLoad
		default:
			m.From = fromWorker
		}
	}
	return nil
}

// drawn are the letters of a reply subject that are the same in all of a process.
func drawn(reply string) string {
	const letters = 12 // of github.com/nats-io/nuid
	_, name, _ := strings.Cut(reply, ".")
	return name[:min(len(name), letters)]
}

// flat is a message's headers as they are on the wire, and its data.
func flat(m *nats.Msg) []byte {
	if len(m.Header) == 0 {
		return m.Data
	}
	body := []byte("NATS/1.0\r\n")
	for name, values := range m.Header {
		for _, v := range values {
			body = fmt.Appendf(body, "%s: %s\r\n", name, v)
		}
	}
	body = append(body, "\r\n"...)
	return append(body, m.Data...)
}

// covers tells whether a subject matches a filter of NATS.
func covers(filter, subject string) bool {
	for {
		f, fs, more := strings.Cut(filter, ".")
		s, ss, left := strings.Cut(subject, ".")
		switch {
		case f == ">":
			return s != ""
		case f != "*" && f != s:
			return false
		case !more || !left:
			return more == left
		}
		filter, subject = fs, ss
	}
}

// class is the kind of a stream: its name without the namespace and the partition.
func (s *spool) class() string {
	name := strings.TrimPrefix(s.Config.Name, "drover-"+string(namespace)+"-")
	return strings.TrimRight(strings.TrimRight(name, "0123456789"), "-")
}

// describe says in the line how many messages of which size there are for each workflow.
func (t *tape) describe(l *line) {
	l.PerClass, l.ClassBytes = map[string]float64{}, map[string]float64{}
	for _, m := range t.Messages {
		class := t.Streams[m.Stream].class()
		l.PerClass[class]++
		l.ClassBytes[class] += float64(len(m.Body))
	}
	for class, n := range l.PerClass {
		l.ClassBytes[class] /= n
		l.PerClass[class] = n / float64(t.Workflows)
	}
	l.Messages = float64(len(t.Messages)) / float64(t.Workflows)
}

func (t *tape) save(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return gob.NewEncoder(f).Encode(t)
}

func loadTape(path string) (*tape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &tape{}
	if err := gob.NewDecoder(f).Decode(t); err != nil {
		return nil, fmt.Errorf("the tape %s: %w", path, err)
	}
	return t, nil
}
