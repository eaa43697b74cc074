package metrics

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/droverhq/drover/internal/tally"
)

// Prometheus' own package takes three times as long to write a scrape of 200 types as to collect
// it: it puts the name and the labels of each line together anew, and checks them. Here they are
// put together once.

// escape writes the value of a label.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// bounds are the labels of the buckets of a histogram.
var bounds = func() (all [len(tally.Classic) + 1]string) {
	for i, bound := range tally.Classic {
		all[i] = `le="` + strconv.FormatFloat(bound, 'g', -1, 64) + `"} `
	}
	all[len(tally.Classic)] = `le="+Inf"} `
	return all
}()

// texts are the lines of each metric, to be used again.
var texts = sync.Pool{New: func() any { lines := make([][]byte, len(table)); return &lines }}

// writeText writes what the set shows in the text form, version 0.0.4.
func (s *Set) writeText(w io.Writer) error {
	pooled := texts.Get().(*[][]byte)
	defer texts.Put(pooled)
	lines := *pooled
	for i := range lines {
		lines[i] = lines[i][:0]
	}
	s.each(func(m *sample) { lines[m.at] = m.appendText(lines[m.at]) })
	var head []byte
	for i, m := range table {
		if len(lines[i]) == 0 {
			continue
		}
		head = append(head[:0], "# HELP "...)
		head = append(append(append(head, m.Name...), ' '), m.Help...)
		head = append(append(append(head, "\n# TYPE "...), m.Name...), ' ')
		head = append(append(head, m.Kind...), '\n')
		if _, err := w.Write(head); err != nil {
			return err
		}
		if _, err := w.Write(lines[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sample) appendText(to []byte) []byte {
	if s.Kind != Histogram {
		return append(strconv.AppendFloat(s.begin(to, ""), s.value, 'g', -1, 64), '\n')
	}
	for i, le := range bounds {
		n := s.times.Count
		if i < len(s.times.Upto) {
			n = s.times.Upto[i]
		}
		to = append(append(to, s.Name...), "_bucket{"...)
		if to = append(to, s.series.text...); s.series.text != "" {
			to = append(to, ',')
		}
		to = append(strconv.AppendUint(append(to, le...), n, 10), '\n')
	}
	to = append(strconv.AppendFloat(s.begin(to, "_sum"), s.times.Sum, 'g', -1, 64), '\n')
	return append(strconv.AppendUint(s.begin(to, "_count"), s.times.Count, 10), '\n')
}

// begin appends the begin of a line: up to the value.
func (s *sample) begin(to []byte, suffix string) []byte {
	to = append(append(to, s.Name...), suffix...)
	if s.series.text != "" {
		to = append(append(append(to, '{'), s.series.text...), '}')
	}
	return append(to, ' ')
}
