"""One folder a Lambda function, a thin handler in each."""
