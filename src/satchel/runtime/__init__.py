"""Run a call: from the request of the model to a result, whatever the tool does."""
