"""What a worker's agents have: endpoints, models, kinds of sub-tasks, tools and tool servers."""
