package runs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// RangeRead is a piece of a history that is read with one question: the bodies of its records, by
// which runs are rebuilt whose last record says everything.
//
// Only the bodies are read: the headers that the server adds to each message of a direct get, and
// the reading of them, were more than half of what a read costs. That a body is the record in
// question its hash says, of which [MarkOf] is known; the sequence alone would not do where
// messages are missing.
type RangeRead struct {
	From, End uint64 // sequences; End is the first one after it

	bodies [][]byte       // nil where one was used. Each stands in its place unless byMark is there
	byMark map[uint64]int // places, where messages are missing
}

// rangeReadBytes is where a read ends that has brought large records. The others are asked for
// anew.
const rangeReadBytes = 4 << 20

// MarkOf is what is kept of the hash of a record to know it again.
func MarkOf(hash []byte) uint64 {
	if len(hash) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(hash)
}

// ReadRange reads a piece of a history: the bodies that are there, and the sequence of the last
// one.
func (r *Reader) ReadRange(
	ctx context.Context, partition int, from, end uint64,
) (bodies [][]byte, last uint64, err error) {
	return r.Conn.BodiesDirect(
		ctx,
		r.Namespace.StreamHistory(partition),
		from,
		int(end-from),
		rangeReadBytes,
	)
}

// Fill takes what [Reader.ReadRange] has brought. The read then ends after the last body.
func (st *RangeRead) Fill(bodies [][]byte, last uint64) {
	st.bodies = bodies
	if len(bodies) > 0 {
		st.End = min(st.End, last+1)
	}
	if uint64(len(bodies)) != last+1-st.From {
		st.index()
	}
}

// index finds the places of bodies where messages are missing.
func (st *RangeRead) index() {
	st.byMark = make(map[uint64]int, len(st.bodies))
	for i, b := range st.bodies {
		hash := sha256.Sum256(b)
		st.byMark[MarkOf(hash[:])] = i
	}
}

// Take gives away the body of the record at a sequence that has this mark, and its hash; nil if it
// is not there.
func (st *RangeRead) Take(seq, mark uint64) (body, hash []byte) {
	i := seq - st.From
	if st.byMark != nil {
		place, ok := st.byMark[mark]
		if !ok {
			return nil, nil
		}
		i = uint64(place)
	}
	if i >= uint64(len(st.bodies)) || st.bodies[i] == nil {
		return nil, nil
	}
	body = st.bodies[i]
	sum := sha256.Sum256(body)
	if MarkOf(sum[:]) != mark {
		return nil, nil
	}
	st.bodies[i] = nil
	return body, sum[:]
}
