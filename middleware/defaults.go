package middleware

// defaults are the layers that a standard plan has without being asked.
func defaults() []Layer {
	return []Layer{Recovery(), Tracing(), Metrics(), Logging(), DeadLetter(), Retry(), InnerRecovery()}
}
