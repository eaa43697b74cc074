package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// consumerState is what the server calls the file that says what a consumer has delivered, and
// unreadable what is put after the name of one that it cannot read.
const (
	consumerState = "o.dat"
	unreadable    = ".unreadable"
)

// mendConsumers deals with the consumers that a power cut has left torn, or past the end of their
// stream. It is called when the server has recovered its streams.
func (s *Server) mendConsumers(ctx context.Context) error {
	streams, err := s.streams()
	if err == nil {
		err = s.setAside(streams)
	}
	if err != nil {
		return unusable(s.store.dir, err)
	}
	return s.comeBack(ctx, streams)
}

// setAside renames the state of each consumer that the server could not recover. A power cut can
// leave one empty or torn, and then the server refuses to make that consumer again, for ever.
// Without a state it begins at the first message of its stream: of a task list that is every task
// that was not acknowledged, and a task twice is recognised (P-7).
func (s *Server) setAside(streams []server.StreamDetail) error {
	known := make(map[[2]string]bool)
	for _, stream := range streams {
		for _, c := range stream.Consumer {
			known[[2]string{stream.Name, c.Name}] = true
		}
	}
	states := matches(s.store.dir, server.JetStreamStoreDir, "*", "streams", "*", "obs", "*",
		consumerState)
	for _, path := range states {
		name := filepath.Base(filepath.Dir(path))
		stream := filepath.Dir(filepath.Dir(filepath.Dir(path)))
		if known[[2]string{filepath.Base(stream), name}] ||
			strings.HasPrefix(filepath.Base(stream), ".") {
			continue
		}
		if err := os.Rename(path, path+unreadable); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.log.Warnf(
			"embedded server: the state of consumer %s of stream %s could not be read; it is "+
				"now %s, and the consumer begins anew: messages come again", name,
			filepath.Base(stream), path+unreadable)
	}
	return nil
}

// comeBack resets each consumer that is past the end of its stream. A power cut can take the last
// messages of a stream that is not synced, and leave what a consumer says of them; then the tasks
// that are repeated get the numbers of those that are lost, and are not delivered. The server sees
// to that itself, unless that makes a state in which nothing has been delivered: it takes such a
// one for one that was not read yet, and reads that of before (ForceUpdate, as of 2.15.3).
//
// It begins again where its acknowledgements end. Consumers of Drover deliver all messages; one
// that does not is a stranger's, and may not be set back.
func (s *Server) comeBack(ctx context.Context, streams []server.StreamDetail) error {
	next := make(map[*server.ConsumerInfo]uint64)
	for _, stream := range streams {
		last := stream.State.LastSeq
		for _, c := range stream.Consumer {
			if c.Delivered.Stream > last && c.Config.DeliverPolicy == server.DeliverAll {
				next[c] = min(c.AckFloor.Stream, last) + 1
			}
		}
	}
	if len(next) == 0 {
		return nil
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.srv))
	if err != nil {
		return fmt.Errorf("connect to reset consumers: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for c, seq := range next {
		if _, err := js.ResetConsumerToSequence(ctx, c.Stream, c.Name, seq); err != nil {
			return fmt.Errorf("reset consumer %s of stream %s: %w", c.Name, c.Stream, err)
		}
		s.log.Warnf("embedded server: consumer %s of stream %s was past the end of it, as "+
			"messages are lost: it begins again at message %d", c.Name, c.Stream, seq)
	}
	return nil
}

// streams returns those that the server has, with their consumers.
func (s *Server) streams() (all []server.StreamDetail, err error) {
	info, err := s.srv.Jsz(&server.JSzOptions{
		Accounts: true, Streams: true, Consumer: true, Config: true,
	})
	if err != nil {
		return nil, err
	}
	for _, account := range info.AccountDetails {
		all = append(all, account.Streams...)
	}
	return all, nil
}
