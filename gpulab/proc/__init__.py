"""The one place that starts processes, and the one that ends them."""
