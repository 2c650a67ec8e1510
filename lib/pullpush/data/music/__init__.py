"""Music on instruments of soundfonts: phrases, players and the world that they make."""
