package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
)

const (
	// askServers asks every server of a NATS cluster for its settings. Only users of the system
	// account hear an answer.
	askServers = "$SYS.REQ.SERVER.PING.VARZ"
	// serversAnswer is how long answers are collected. Nobody knows how many will come.
	serversAnswer = 500 * time.Millisecond
)

// varz is the part of a server's answer that counts here.
type varz struct {
	Server struct {
		Name string `json:"name"`
	} `json:"server"`
	Data struct {
		JetStream struct {
			Config *struct {
				SyncAlways   bool          `json:"sync_always"`
				SyncInterval time.Duration `json:"sync_interval"`
			} `json:"config"`
		} `json:"jetstream"`
	} `json:"data"`
}

// sync looks at NATS servers that are no nodes of ours.
func (e *examination) sync(ctx context.Context) bool {
	elsewhere := len(e.nodes) == 0 || slices.ContainsFunc(e.nodes,
		func(n nodes.Info) bool { return !n.Malformed && n.Profile == external })
	if !elsewhere {
		return true
	}
	conn := cmp.Or(e.o.System, e.conn)
	answers, err := askAll(ctx, conn)
	if err == nil && len(answers) > 0 {
		e.add(judgeServers(answers)...)
		return true
	}
	e.add(Finding{
		Warn, checkSync, "how the NATS servers elsewhere sync cannot be seen with this user",
		"name a context of the system account with --system-context; or see to sync_interval: " +
			"always in their configuration",
	})
	return true
}

func judgeServers(answers []varz) []Finding {
	var found []Finding
	for _, a := range answers {
		switch c := a.Data.JetStream.Config; {
		case c == nil: // a server without JetStream holds nothing of ours
		case c.SyncAlways:
			found = append(found,
				Finding{Status: OK, Check: checkSync, Found: a.Server.Name + ": always"})
		default:
			found = append(found, Finding{
				Warn, checkSync,
				fmt.Sprintf("%s syncs its files every %v", a.Server.Name, c.SyncInterval),
				"a power cut loses what was acknowledged since, unless other replicas keep " +
					"their power: set sync_interval: always in its jetstream block",
			})
		}
	}
	return found
}

// askAll collects the answers of all servers; none if the user may not ask.
func askAll(ctx context.Context, conn *natsconn.Conn) ([]varz, error) {
	inbox := conn.NATS().NewInbox()
	came := make(chan natsconn.Msg, 256)
	sub, err := conn.Subscribe(inbox, "", func(m natsconn.Msg) {
		select {
		case came <- m:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	if err := conn.PublishReply(askServers, inbox, nil, nil); err != nil {
		return nil, err
	}
	limit := time.NewTimer(serversAnswer)
	defer limit.Stop()
	var all []varz
	for {
		select {
		case m := <-came:
			var v varz
			if json.Unmarshal(m.Data, &v) == nil && v.Server.Name != "" {
				all = append(all, v)
			} else if len(m.Data) == 0 {
				return all, nil // nobody listens
			}
		case <-limit.C:
			return all, nil
		case <-ctx.Done():
			return all, ctx.Err()
		}
	}
}
