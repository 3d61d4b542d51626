"""`bifolio import strapi`: import of a Strapi installation."""
