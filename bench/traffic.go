package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
)

// accountStats is where a NATS server tells any client about the client's own account.
const accountStats = "$SYS.REQ.ACCOUNT.PING.STATZ"

// traffic is how many messages a NATS server has received from its clients and sent to them, since its start.
type traffic struct{ received, sent int64 }

func readTraffic(ctx context.Context, conn *natsconn.Conn) (traffic, error) {
	m, err := conn.Request(ctx, accountStats, nil, nil)
	if err != nil {
		return traffic{}, fmt.Errorf("count messages: %w", err)
	}
	return parseTraffic(m.Data)
}

// parseTraffic adds up the accounts of an answer: a client is told about its own.
func parseTraffic(body []byte) (t traffic, err error) {
	type count struct {
		Msgs int64 `json:"msgs"`
	}
	var answer struct {
		Data struct {
			Accounts []struct {
				Sent     count `json:"sent"`
				Received count `json:"received"`
			} `json:"account_statz"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return t, fmt.Errorf("count messages: the server's answer %.200q: %w", body, err)
	}
	if len(answer.Data.Accounts) == 0 {
		return t, fmt.Errorf("count messages: the server's answer %.200q names no account", body)
	}
	for _, a := range answer.Data.Accounts {
		t.received += a.Received.Msgs
		t.sent += a.Sent.Msgs
	}
	return t, nil
}
