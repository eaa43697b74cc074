package natsconn

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Stored is a message in a stream.
type Stored struct {
	Subject string
	Seq     uint64
	Time    time.Time // the server's, UTC
	Header  Header    // as published; nil when there were none
	Data    []byte
}

type getRequest struct {
	Seq      uint64 `json:"seq,omitempty"`
	LastFor  string `json:"last_by_subj,omitempty"`
	NextFor  string `json:"next_by_subj,omitempty"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
	// StartTime stands in place of Seq. Servers that do not know it ignore it.
	StartTime *time.Time `json:"start_time,omitempty"`
	// NoHeaders leaves out all headers, those of the server too. Servers that do not know it ignore
	// it.
	NoHeaders bool `json:"no_hdr,omitempty"`
}

type getResponse struct {
	answer
	Message struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// LastBySubject reads the last message of a subject (wildcards allowed) from the stream's leader.
// None is [ErrNotFound].
func (c *Conn) LastBySubject(ctx context.Context, stream, subject string) (*Stored, error) {
	if subject == "" {
		return nil, fmt.Errorf("%w: last message of stream %s: the subject is empty",
			ErrInvalid, stream)
	}
	return c.get(ctx, stream, getRequest{LastFor: subject})
}

// GetSeq reads one message from the stream's leader. A deleted or future sequence is [ErrNotFound].
func (c *Conn) GetSeq(ctx context.Context, stream string, seq uint64) (*Stored, error) {
	if seq == 0 {
		return nil, fmt.Errorf("%w: message 0 of stream %s: sequences begin at 1",
			ErrInvalid, stream)
	}
	return c.get(ctx, stream, getRequest{Seq: seq})
}

// NextBySubject reads the first message at or after seq that matches subject (wildcards allowed)
// from the stream's leader. None is [ErrNotFound].
func (c *Conn) NextBySubject(
	ctx context.Context, stream, subject string, seq uint64,
) (*Stored, error) {
	if subject == "" {
		return nil, fmt.Errorf("%w: next message of stream %s: the subject is empty",
			ErrInvalid, stream)
	}
	return c.get(ctx, stream, getRequest{Seq: max(seq, 1), NextFor: subject})
}

// FirstSince reads the first message that matches subject (wildcards allowed) of those that were
// stored at the instant at or after it, from the stream's leader. None is [ErrNotFound]. A server
// that does not know the question may answer with an earlier message of the subject, never with a
// later one.
func (c *Conn) FirstSince(
	ctx context.Context, stream, subject string, at time.Time,
) (*Stored, error) {
	if subject == "" {
		return nil, fmt.Errorf("%w: first message of stream %s since %v: the subject is empty",
			ErrInvalid, stream, at)
	}
	at = at.UTC()
	return c.get(ctx, stream, getRequest{StartTime: &at, NextFor: subject})
}

// one is a batch of a single answer: a direct get without a number of messages ends with its first.
type one struct{ batch }

func (o *one) take(m *nats.Msg) bool {
	o.batch.take(m)
	return true
}

// LastBySubjectDirect reads the last message of a subject (wildcards allowed) from whichever
// replica of the stream answers. None is [ErrNotFound], which a replica that lags may say of what
// its leader has; with one replica nobody lags. It costs less than half of what
// [Conn.LastBySubject] does. The stream must allow direct gets.
func (c *Conn) LastBySubjectDirect(ctx context.Context, stream, subject string) (*Stored, error) {
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	if subject == "" {
		return nil, fmt.Errorf("%w: last message of stream %s: the subject is empty",
			ErrInvalid, stream)
	}
	return c.getDirect(ctx, stream, "subject "+subject, getRequest{LastFor: subject})
}

// getDirect asks for a message; what names it in errors.
func (c *Conn) getDirect(
	ctx context.Context, stream, what string, req getRequest,
) (*Stored, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("stream %s, %s: %w", stream, what, err)
	}
	o, err := ask(ctx, c, c.api+".DIRECT.GET."+stream, body, func() *one { return &one{} })
	switch {
	case err != nil:
		return nil, err
	case o.err != nil:
		return nil, fmt.Errorf("stream %s, %s: %w", stream, what, o.err)
	case len(o.got) == 0:
		return nil, fmt.Errorf("stream %s, %s: %w", stream, what, ErrNotFound)
	}
	return &o.got[0], nil
}

// GetSeqDirect reads one message from whichever replica of the stream answers. One that is deleted,
// or that the replica does not have yet, is [ErrNotFound]. It costs less than half of what
// [Conn.GetSeq] does. The stream must allow direct gets.
func (c *Conn) GetSeqDirect(ctx context.Context, stream string, seq uint64) (*Stored, error) {
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, fmt.Errorf("%w: message 0 of stream %s: sequences begin at 1",
			ErrInvalid, stream)
	}
	return c.getDirect(ctx, stream, fmt.Sprintf("message %d", seq), getRequest{Seq: seq})
}

// NextBySubjectDirect reads the first message at or after seq that matches subject (wildcards
// allowed) from whichever replica of the stream answers. None is [ErrNotFound], which a replica
// that lags may say of what its leader has. The stream must allow direct gets.
func (c *Conn) NextBySubjectDirect(
	ctx context.Context, stream, subject string, seq uint64,
) (*Stored, error) {
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	if subject == "" {
		return nil, fmt.Errorf("%w: next message of stream %s: the subject is empty",
			ErrInvalid, stream)
	}
	return c.getDirect(ctx, stream, fmt.Sprintf("subject %s from %d on", subject, seq),
		getRequest{Seq: max(seq, 1), NextFor: subject})
}

// BodiesDirect reads the bodies of up to n messages of a stream from the sequence from on, in their
// order and whatever their subjects, from whichever replica of the stream answers: those of the
// newest that it does not have yet are missing, as are those that are deleted. It stops after
// maxBytes, but not before the first. last is the sequence of the last body: if there are as many
// as lie between from and last, none is missing, and the place of each is known. Otherwise a body
// must tell itself which it is.
//
// The headers are left out, which is half of what a message costs both sides. To ask for one
// message costs less than to ask for several. The stream must allow direct gets.
func (c *Conn) BodiesDirect(
	ctx context.Context, stream string, from uint64, n, maxBytes int,
) (bodies [][]byte, last uint64, err error) {
	if err := checkName("stream", stream); err != nil {
		return nil, 0, err
	}
	if n < 1 || from == 0 || maxBytes < 1 {
		return nil, 0, fmt.Errorf(
			"%w: %d bodies of stream %s from %d on, in %d bytes: want at least 1 of each, and sequences begin at 1",
			ErrInvalid,
			n,
			stream,
			from,
			maxBytes,
		)
	}
	req := getRequest{Seq: from, NoHeaders: true}
	if n > 1 {
		req.Batch, req.MaxBytes = n, maxBytes
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, 0, fmt.Errorf("bodies of stream %s: %w", stream, err)
	}
	b, err := ask(ctx, c, c.api+".DIRECT.GET."+stream, body, func() *bare {
		return &bare{got: make([][]byte, 0, min(n, maxBatchRoom)), last: from, alone: n == 1}
	})
	switch {
	case err != nil:
		return nil, 0, err
	case b.err != nil:
		return nil, 0, fmt.Errorf("stream %s, %d bodies from %d on: %w", stream, n, from, b.err)
	case len(b.got) == 0:
		return nil, 0, nil
	}
	return b.got, b.last, nil
}

// bare collects the answers of a direct get without headers.
type bare struct {
	got   [][]byte
	last  uint64
	alone bool // the first answer is the last
	err   error
}

// take reads one answer. The end and the refusals have a status and no sequence; servers that know
// no bodies without headers send the sequence with each.
func (b *bare) take(m *nats.Msg) (complete bool) {
	if _, old := m.Header[headerSequence]; old || len(m.Header) == 0 {
		b.got = append(b.got, m.Data)
		return b.alone
	}
	switch status := m.Header.Get(statusHeader); status {
	case "204":
		if b.last, b.err = strconv.ParseUint(m.Header.Get(headerLastSequence), 10, 64); b.err != nil {
			b.err = fmt.Errorf("end of batch: %w", b.err)
		}
	case "404":
	default:
		b.err = refusedGet(status, m)
	}
	return true
}

// refusedGet is why a direct get was not answered.
func refusedGet(status string, m *nats.Msg) error {
	if status == statusNoResponders {
		return fmt.Errorf("%w, or it does not allow direct gets", ErrNoStream)
	}
	code, _ := strconv.Atoi(status)
	return &APIError{
		Code: code, Description: "direct get: " + status + " " + m.Header.Get("Description"),
	}
}

// maxBatchRoom bounds what is set aside for the answers of a range before they are there.
const maxBatchRoom = 256

func (c *Conn) get(ctx context.Context, stream string, req getRequest) (*Stored, error) {
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	var resp getResponse
	if err := c.call(ctx, "STREAM.MSG.GET."+stream, req, &resp); err != nil {
		return nil, err
	}
	m := resp.Message
	s := &Stored{Subject: m.Subject, Seq: m.Seq, Time: m.Time, Data: m.Data}
	if len(m.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return nil, fmt.Errorf("stream %s, message %d: unreadable headers: %w",
				stream, m.Seq, err)
		}
		s.Header = h
	}
	return s, nil
}

// batch collects the answers of a batch direct get.
type batch struct {
	got     []Stored
	pending uint64 // that match after these
	err     error
}

// take reads one answer. A data message is known by the sequence that the server adds after the
// publisher's own headers; the end and the refusals have none. So no stored header can pose as the
// end of the batch.
func (b *batch) take(m *nats.Msg) (complete bool) {
	if _, ok := m.Header[headerSequence]; ok {
		s, err := fromDirect(m)
		if err != nil {
			b.err = err
			return true
		}
		b.got = append(b.got, s)
		return false
	}
	switch status := m.Header.Get(statusHeader); status {
	case "204":
		var err error
		if b.pending, err = strconv.ParseUint(m.Header.Get(headerNumPending), 10, 64); err != nil {
			b.err = fmt.Errorf("end of batch: %w", err)
		}
	case "404":
	default:
		b.err = refusedGet(status, m)
	}
	return true
}

// BatchGet reads up to limit messages of a subject (wildcards allowed), from the sequence fromSeq
// on, in order, in one round trip; more says that there were others after them at that time.
// Nothing found is an empty result. The stream must allow direct gets; any replica may answer, so
// the newest messages can be missing.
//
// For one run's history ask its literal subject from sequence 1, which is faster than a known first
// sequence.
func (c *Conn) BatchGet(
	ctx context.Context, stream, subject string, fromSeq uint64, limit int,
) (got []Stored, more bool, err error) {
	return c.BatchGetWithin(ctx, stream, subject, fromSeq, limit, 0)
}

// BatchGetWithin is [Conn.BatchGet] that stops after maxBytes, but not before the first message; 0
// leaves that to the server.
func (c *Conn) BatchGetWithin(
	ctx context.Context, stream, subject string, fromSeq uint64, limit, maxBytes int,
) (got []Stored, more bool, err error) {
	b, err := c.batchGet(ctx, stream, subject, fromSeq, limit, maxBytes)
	if err != nil {
		return nil, false, err
	}
	return b.got, b.pending > 0, nil
}

// CountDirect counts the messages of a subject (wildcards allowed) in a stream, from its beginning
// on, by the server's index of subjects: none but the first is read. The stream must allow direct
// gets; any replica may answer, so the newest messages can be missing.
func (c *Conn) CountDirect(ctx context.Context, stream, subject string) (uint64, error) {
	b, err := c.batchGet(ctx, stream, subject, 1, 1, 0)
	if err != nil {
		return 0, err
	}
	return uint64(len(b.got)) + b.pending, nil
}

func (c *Conn) batchGet(
	ctx context.Context, stream, subject string, fromSeq uint64, limit, maxBytes int,
) (*batch, error) {
	if err := checkName("stream", stream); err != nil {
		return nil, err
	}
	if limit < 1 || subject == "" {
		return nil, fmt.Errorf(
			"%w: batch of stream %s: subject %q, limit %d: want a subject and at least 1",
			ErrInvalid, stream, subject, limit)
	}
	body, err := json.Marshal(getRequest{
		Seq: max(fromSeq, 1), NextFor: subject, Batch: limit, MaxBytes: maxBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("batch of stream %s: %w", stream, err)
	}
	b, err := ask(ctx, c, c.api+".DIRECT.GET."+stream, body, func() *batch { return &batch{} })
	if err != nil {
		return nil, err
	}
	if b.err != nil {
		return nil, fmt.Errorf("stream %s, subject %s: %w", stream, subject, b.err)
	}
	return b, nil
}

// added are the headers that a direct get appends to the publisher's.
var added = [...]string{
	"Nats-Stream", headerSubject, headerSequence, headerTimeStamp, headerNumPending,
	headerLastSequence,
}

// fromDirect reads the server's headers off a direct get's answer and leaves the publisher's. The
// server appends its own, so the last value of each name is true, whatever the publisher put
// before.
func fromDirect(m *nats.Msg) (Stored, error) {
	s := Stored{Data: m.Data}
	var seq, at string
	for _, name := range added {
		values := m.Header[name]
		if len(values) == 0 {
			continue
		}
		last := values[len(values)-1]
		switch name {
		case headerSubject:
			s.Subject = last
		case headerSequence:
			seq = last
		case headerTimeStamp:
			at = last
		}
		if len(values) == 1 {
			delete(m.Header, name)
		} else {
			m.Header[name] = values[:len(values)-1]
		}
	}
	var err error
	if s.Seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return Stored{}, fmt.Errorf("direct get: sequence: %w", err)
	}
	if s.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return Stored{}, fmt.Errorf("direct get of message %d: time: %w", s.Seq, err)
	}
	if len(m.Header) > 0 {
		s.Header = m.Header
	}
	return s, nil
}
