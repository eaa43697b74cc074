package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// consumerState is what the server calls the file that says what a consumer has delivered, and
// unreadable what is put after the name of one that it cannot read.
const (
	consumerState = "o.dat"
	unreadable    = ".unreadable"
)

// setAside renames the state of each consumer that the server could not recover. A power cut can
// leave one empty or torn, and then the server refuses to make that consumer again, for ever.
// Without a state it begins at the first message of its stream: of a task list that is every task
// that was not acknowledged, and a task twice is recognised (P-7).
func (s *Server) setAside() error {
	known, err := s.consumers()
	if err != nil {
		return err
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

// consumers returns those that the server has, by stream and name.
func (s *Server) consumers() (map[[2]string]bool, error) {
	info, err := s.srv.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true})
	if err != nil {
		return nil, err
	}
	known := make(map[[2]string]bool)
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			for _, c := range stream.Consumer {
				known[[2]string{stream.Name, c.Name}] = true
			}
		}
	}
	return known, nil
}
