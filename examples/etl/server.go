package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// server is a "drover dev" that this program has started. It keeps everything in memory.
type server struct {
	url string
	cmd *exec.Cmd
	dir string
}

// startServer builds the server and starts it on a free port.
func startServer(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "drover-etl-server-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	if err := s.start(ctx, filepath.Join(dir, "drover")); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) start(ctx context.Context, binary string) error {
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, "github.com/droverhq/drover/cmd/drover")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w; run this in the module of Drover, or give -nats: %s", err, bytes.TrimSpace(out))
	}
	cmd := exec.Command(binary, "dev", "--port", "0", "--json", "--log-level", "error")
	cmd.Env = append(os.Environ(), "NATS_URL=")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the server ended before it was ready: %w", err)
	}
	var ready struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(line), &ready); err != nil || ready.URL == "" {
		return fmt.Errorf("the server said %q, want its address", strings.TrimSpace(line))
	}
	s.url = ready.URL
	return nil
}

// stop ends the server and removes its binary. It keeps nothing that could be lost.
func (s *server) stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}
