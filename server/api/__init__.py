"""HTTP: the Flask app, its blueprints, and how documents become answers."""
