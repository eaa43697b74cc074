package partition

import "github.com/droverhq/drover/broker/partition/watermark"

// completion is what the positions of a checkpoint wait for: see package watermark.
type completion = watermark.Completion
