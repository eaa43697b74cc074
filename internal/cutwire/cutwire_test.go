package cutwire

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
)

// pipe is a server that keeps what it was sent.
type pipe struct{ got chan []byte }

func (p *pipe) InProcessConn() (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		var all []byte
		buf := make([]byte, 4096)
		for {
			n, err := server.Read(buf)
			all = append(all, buf[:n]...)
			if err != nil {
				p.got <- all
				return
			}
		}
	}()
	return client, nil
}

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict Verdict
		want    string
		dead    bool
	}{
		{"pass", Pass, "CONNECT {}\r\nPUB a 1\r\nx\r\nHPUB b r 3 5\r\nH\r\nyy\r\nPUB c 0\r\n\r\n", false},
		{"swallow", Swallow, "CONNECT {}\r\nPUB a 1\r\nx\r\nPUB c 0\r\n\r\n", false},
		{"unanswered", Unanswered, "CONNECT {}\r\nPUB a 1\r\nx\r\nHPUB b _LOST 3 5\r\nH\r\nyy\r\nPUB c 0\r\n\r\n", false},
		{"twice", Twice, "CONNECT {}\r\nPUB a 1\r\nx\r\nHPUB b r 3 5\r\nH\r\nyy\r\nHPUB b r 3 5\r\nH\r\nyy\r\nPUB c 0\r\n\r\n", false},
		{"cut before", CutBefore, "CONNECT {}\r\nPUB a 1\r\nx\r\n", true},
		{"cut after", CutAfter, "CONNECT {}\r\nPUB a 1\r\nx\r\nHPUB b r 3 5\r\nH\r\nyy\r\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := &pipe{got: make(chan []byte, 1)}
			w := New(server)
			w.Judge(func(subject string, body []byte) Verdict {
				if subject == "b" && bytes.Equal(body, []byte("H\r\nyy")) {
					return tt.verdict
				}
				return Pass
			})
			c, err := w.InProcessConn()
			if err != nil {
				t.Fatal(err)
			}
			// In pieces that end in the middle of messages.
			for _, piece := range []string{"CONNECT {}\r\nPU", "B a 1\r\nx\r\nHPUB b r 3 5\r\nH\r", "\nyy\r\nPUB c 0\r\n\r\n"} {
				if _, err := c.Write([]byte(piece)); err != nil {
					break
				}
			}
			c.Close()
			if got := string(<-server.got); got != tt.want {
				t.Fatalf("the server got %q, want %q", got, tt.want)
			}
			_, err = w.InProcessConn()
			if dead := err != nil; dead != tt.dead {
				t.Fatalf("connecting again: %v, want dead %v", err, tt.dead)
			}
		})
	}
}

func TestUnansweredWithoutAReply(t *testing.T) {
	for message, want := range map[string]string{
		"PUB a 1\r\nx\r\n":            "PUB a 1\r\nx\r\n",
		"PUB a r 1\r\nx\r\n":          "PUB a _LOST 1\r\nx\r\n",
		"HPUB a 3 5\r\nH\r\nyy\r\n":   "HPUB a 3 5\r\nH\r\nyy\r\n",
		"HPUB a r 3 5\r\nH\r\nyy\r\n": "HPUB a _LOST 3 5\r\nH\r\nyy\r\n",
	} {
		if got := string(unanswered([]byte(message))); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// What is late comes whole, after what was sent after it.
func TestLate(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		server := &pipe{got: make(chan []byte, 1)}
		w := New(server)
		w.Delay(time.Minute)
		w.Judge(func(subject string, _ []byte) Verdict {
			if subject == "b" {
				return Late
			}
			return Pass
		})
		c, err := w.InProcessConn()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("PUB b 1\r\nx\r\nPUB c 1\r\ny\r\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if _, err := c.Write([]byte("PUB d 1\r\nz\r\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		c.Close()
		if got, want := string(<-server.got), "PUB c 1\r\ny\r\nPUB d 1\r\nz\r\nPUB b 1\r\nx\r\n"; got != want {
			t.Fatalf("the server got %q, want %q", got, want)
		}
	})
}
