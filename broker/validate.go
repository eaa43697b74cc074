package broker

import "github.com/droverhq/drover/schemas"

// ValidateStart judges a start as brokers do, for those who keep one to send it later. It must have a workflow id and a run. The error names the field.
func ValidateStart(q *schemas.StartRequest) error {
	if err := validateStart(q); err != nil {
		return err
	}
	return nil
}
