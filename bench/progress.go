package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// progress is what the decider keeps from one decision to the next. Closed counts what the workflow waits for.
//
// It is a line of text, "scheduled closed n millis kind payload": in JSON, reading and writing it took 15 % of the CPU of the worker, more
// than any part of Drover's there, and the deciders of the peers keep their state in memory. W1j is W1 with JSON.
type progress struct {
	job
	Scheduled, Closed int
}

// fields are how many the line has. The last one may have spaces in it.
const fields = 6

func (p *progress) text() schemas.Payload {
	b := make([]byte, 0, 64+len(p.Payload))
	for _, n := range []int64{int64(p.Scheduled), int64(p.Closed), int64(p.N), p.Millis} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(append(b, p.Kind...), ' ')
	return append(b, p.Payload...)
}

// readProgress reads the context of a run; an empty one is that of a run without decisions.
func readProgress(c schemas.Payload) (p progress, err error) {
	if len(c) == 0 {
		return p, nil
	}
	if c[0] == '{' {
		return p, c.Decode(&p)
	}
	all := strings.SplitN(string(c), " ", fields)
	if len(all) != fields {
		return p, fmt.Errorf("the context %.100q has %d fields, want %d", c, len(all), fields)
	}
	var numbers [4]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(all[i], 10, 64); err != nil {
			return p, fmt.Errorf("the context %.100q: %w", c, err)
		}
	}
	p.Scheduled, p.Closed, p.N, p.Millis = int(numbers[0]), int(numbers[1]), int(numbers[2]), numbers[3]
	p.Kind, p.Payload = all[4], all[5]
	return p, nil
}
