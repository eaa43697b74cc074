package runs

import (
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// Reader reads the histories of a namespace.
type Reader struct {
	// Conn is for reads alone: a read keeps its connection busy.
	Conn       *natsconn.Conn
	Namespace  subject.Namespace
	Partitions int
	// BodyLimit is the largest body that is published now, in bytes. An answer takes about half of
	// it.
	BodyLimit func() int
	Log       logrus.FieldLogger

	pages pageIndex
}
