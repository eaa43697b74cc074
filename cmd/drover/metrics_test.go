package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/poll"
)

// --metrics shows what a server does; an address that is taken, or that others reach, is refused before anything begins.
func TestMetricsFlag(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr := newWatched("", nil)
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"dev", "--port", "-1", "--log-level", "info", "--metrics", "127.0.0.1:0"},
			strings.NewReader(""), stderr, stderr)
	}()
	var url string
	poll.Until(t, time.Minute, "the server and its metrics", func() bool {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(stderr.String())
		return url != "" && strings.Contains(stderr.String(), "drover is ready")
	})
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`drover_partition_owned{namespace="default",partition="3"} 1`, `drover_build_info{`, "process_cpu_seconds_total",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	stop()
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("it ends with %d\n%s", code, stderr)
	}

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--metrics " + taken.Addr().String(), cli.ExitFailed, "address already in use"},
		{"--metrics 0.0.0.0:0", cli.ExitUsage, "add --metrics-public"},
		{"--metrics :0", cli.ExitUsage, "add --metrics-public"},
		{"--metrics nonsense", cli.ExitFailed, "use an address such as 127.0.0.1:9464"},
		{"--metrics-public", cli.ExitUsage, "--metrics, which is missing"},
	} {
		r := command("", append([]string{"dev", "--port", "-1"}, strings.Fields(tt.args)...)...)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%s: got %+v, want %q", tt.args, r, tt.want)
		}
	}
}
