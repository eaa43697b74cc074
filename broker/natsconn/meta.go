package natsconn

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const ackPrefix = "$JS.ACK."

// delivery is what a consumer says about a message in its reply subject.
type delivery struct {
	consumer  string
	delivered int    // 1 at the first delivery
	stream    uint64 // sequence in the stream
	sequence  uint64 // sequence of the delivery by this consumer, without gaps
	time      time.Time
	pending   uint64 // messages that the consumer has not delivered yet
}

// parseDelivery reads both forms of the reply subject:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.
//	    <pending>[.<random>…]
//
// It does not allocate.
func parseDelivery(reply string) (d delivery, err error) {
	const oldTokens, newTokens = 7, 9 // after the prefix; the second form has at least 9
	rest, ok := strings.CutPrefix(reply, ackPrefix)
	if !ok {
		return d, fmt.Errorf("%w: %q is no JetStream reply subject", ErrInvalid, reply)
	}
	var tok [newTokens]string
	n := 0
	for more := true; more && n < newTokens; n++ {
		tok[n], rest, more = strings.Cut(rest, ".")
	}
	t := tok[1:oldTokens]
	switch {
	case n == newTokens:
		t = tok[3:]
	case n != oldTokens:
		return d, fmt.Errorf("%w: reply subject %q has %d tokens", ErrInvalid, reply, n+2)
	}
	var num [5]uint64
	for i := range num {
		if num[i], err = strconv.ParseUint(t[i+1], 10, 63); err != nil {
			return delivery{}, fmt.Errorf("%w: reply subject %q: %w", ErrInvalid, reply, err)
		}
	}
	return delivery{
		consumer: t[0], delivered: int(num[0]), stream: num[1], sequence: num[2],
		time: time.Unix(0, int64(num[3])).UTC(), pending: num[4],
	}, nil
}
