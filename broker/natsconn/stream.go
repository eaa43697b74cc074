package natsconn

import (
	"context"
	"fmt"
	"time"
)

type streamInfo struct {
	answer
	State struct {
		Messages uint64 `json:"messages"`
		First    uint64 `json:"first_seq"`
		Last     uint64 `json:"last_seq"`
	} `json:"state"`
}

// StreamState gives a stream's first and last sequence. An empty stream has first = last+1, also
// one in which nothing was ever stored, of which the server says 0 and 0. The leader answers.
func (c *Conn) StreamState(ctx context.Context, stream string) (first, last uint64, err error) {
	if err := checkName("stream", stream); err != nil {
		return 0, 0, err
	}
	var info streamInfo
	if err := c.call(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return 0, 0, err
	}
	return max(info.State.First, 1), info.State.Last, nil
}

// StreamLastSeq gives a stream's last sequence, 0 if nothing was ever stored.
func (c *Conn) StreamLastSeq(ctx context.Context, stream string) (uint64, error) {
	_, last, err := c.StreamState(ctx, stream)
	return last, err
}

// StreamMade is when a stream was made.
func (c *Conn) StreamMade(ctx context.Context, stream string) (time.Time, error) {
	if err := checkName("stream", stream); err != nil {
		return time.Time{}, err
	}
	var info struct {
		answer
		Created time.Time `json:"created"`
	}
	err := c.call(ctx, "STREAM.INFO."+stream, struct{}{}, &info)
	return info.Created, err
}

// StreamTime is the time of a stream's leader, which stamps its messages; the zero time from
// servers that do not tell it.
func (c *Conn) StreamTime(ctx context.Context, stream string) (time.Time, error) {
	if err := checkName("stream", stream); err != nil {
		return time.Time{}, err
	}
	var info struct {
		answer
		Time time.Time `json:"ts"`
	}
	err := c.call(ctx, "STREAM.INFO."+stream, struct{}{}, &info)
	return info.Time, err
}

// StreamSubjects lists the subjects of a stream that match a filter (wildcards allowed), in no
// order. The leader answers. It lists nothing, and says that this is not complete, if the stream
// has more than most subjects.
func (c *Conn) StreamSubjects(
	ctx context.Context, stream, filter string, most int,
) (subjects []string, complete bool, err error) {
	if err := checkName("stream", stream); err != nil {
		return nil, false, err
	}
	if filter == "" {
		return nil, false, fmt.Errorf(
			"%w: subjects of stream %s: the filter is empty: want tokens, with * and > for any",
			ErrInvalid, stream)
	}
	var size streamSize
	if err := c.call(ctx, "STREAM.INFO."+stream, struct{}{}, &size); err != nil ||
		size.State.Subjects > most {
		return nil, false, err
	}
	for {
		found, total, err := c.subjectPage(ctx, stream, filter, len(subjects))
		if err != nil {
			return nil, false, err
		}
		subjects = append(subjects, found...)
		if len(found) == 0 || len(subjects) >= total {
			return subjects, len(subjects) >= total, nil
		}
	}
}

// StreamSubjectCount is how many subjects a stream has. The leader answers.
func (c *Conn) StreamSubjectCount(ctx context.Context, stream string) (int, error) {
	if err := checkName("stream", stream); err != nil {
		return 0, err
	}
	var size streamSize
	err := c.call(ctx, "STREAM.INFO."+stream, struct{}{}, &size)
	return size.State.Subjects, err
}

type streamSize struct {
	answer
	State struct {
		Subjects int `json:"num_subjects"`
	} `json:"state"`
}

// subjectPage lists some subjects after the first ones, and tells how many there are.
func (c *Conn) subjectPage(
	ctx context.Context, stream, filter string, offset int,
) (subjects []string, total int, err error) {
	req := struct {
		Filter string `json:"subjects_filter"`
		Offset int    `json:"offset,omitempty"`
	}{filter, offset}
	var info struct {
		answer
		Total int `json:"total"`
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := c.call(ctx, "STREAM.INFO."+stream, req, &info); err != nil {
		return nil, 0, err
	}
	subjects = make([]string, 0, len(info.State.Subjects))
	for s := range info.State.Subjects {
		subjects = append(subjects, s)
	}
	return subjects, info.Total, nil
}

// DeleteMsg removes one message without overwriting its bytes. A message that is gone is
// [ErrNotFound].
func (c *Conn) DeleteMsg(ctx context.Context, stream string, seq uint64) error {
	if err := checkName("stream", stream); err != nil {
		return err
	}
	req := struct {
		Seq     uint64 `json:"seq"`
		NoErase bool   `json:"no_erase"`
	}{seq, true}
	return c.call(ctx, "STREAM.MSG.DELETE."+stream, req, &answer{})
}

type purgeRequest struct {
	Filter string `json:"filter,omitempty"`
	Seq    uint64 `json:"seq,omitempty"`
}

// Purge removes the messages below keepFromSeq; with a subject (wildcards allowed) only those that
// match it. With keepFromSeq 0 or 1 nothing lies below, so nothing is asked: the server would take
// 0 for "everything".
func (c *Conn) Purge(ctx context.Context, stream, subject string, keepFromSeq uint64) error {
	if err := checkName("stream", stream); err != nil {
		return err
	}
	if keepFromSeq <= 1 {
		return nil
	}
	return c.call(ctx, "STREAM.PURGE."+stream, purgeRequest{subject, keepFromSeq}, &answer{})
}

// PurgeSubject removes all messages of a subject (wildcards allowed).
func (c *Conn) PurgeSubject(ctx context.Context, stream, subject string) error {
	if err := checkName("stream", stream); err != nil {
		return err
	}
	if subject == "" || subject == ">" {
		return fmt.Errorf("%w: purge of subject %q would empty stream %s: name the subject",
			ErrInvalid, subject, stream)
	}
	return c.call(ctx, "STREAM.PURGE."+stream, purgeRequest{Filter: subject}, &answer{})
}
